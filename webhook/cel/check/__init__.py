"""Checks the types of an expression before it runs. Knows no values."""
