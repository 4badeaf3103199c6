"""Vector registers, typed loads, and what this CPU has. Lesson 4."""

from minfer_lib.simd.isa import require_half_floats

require_half_floats()
