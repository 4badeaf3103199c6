"""Lesson 8, full model decode: from a prompt to the next token."""
