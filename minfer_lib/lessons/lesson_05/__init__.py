"""Lesson 5, K-quants and the min term: super-blocks, and the search for their scales."""
