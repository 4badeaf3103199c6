"""Lesson 6, thread chunks: who computes which rows of a matrix product."""
