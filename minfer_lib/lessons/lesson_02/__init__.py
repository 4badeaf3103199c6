"""Lesson 2, Q8_0 quantization: 32 values become a block."""
