"""Checks the types of an expression before it runs."""
