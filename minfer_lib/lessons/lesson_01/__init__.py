"""Lesson 1, block layouts: what the bytes of a file and of a block mean."""
