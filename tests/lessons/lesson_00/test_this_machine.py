"""What this machine is, as lesson 0 shows it."""

from minfer_lib.lessons import machine
from minfer_lib.native.cpus import cpus
from minfer_lib.simd.isa import cpu_features, isas


def test_it_is_this_machine():
    told = dict(machine().rows)
    assert told["cores for this process"] == str(cpus())
    assert told["kernel sets, best first"].split() == list(isas())
    features = told["CPU features of the lessons"].split()
    assert features == ["none"] or set(features) <= set(cpu_features())
    assert told["memory"].endswith(" GiB") and "numba " in told["packages"] and told["processor"]
