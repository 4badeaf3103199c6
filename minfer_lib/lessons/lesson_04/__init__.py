"""Lesson 4, SIMD dot: the same products in registers and in tiles."""
