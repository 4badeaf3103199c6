"""Lesson 0, start here: the map of the course and the machine that it runs on."""
