"""What several lessons show with: the look of figures, tables, steppers, the byte passport, the runner of checks."""
