"""Lesson 7, MMVQ geometry: a matrix product on a GPU, lane by lane."""
