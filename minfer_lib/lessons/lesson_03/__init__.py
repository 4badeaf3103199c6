"""Lesson 3, scalar dot: one output number, its bits and its place."""
