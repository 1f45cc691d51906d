"""Compiles a checked expression to a Python function."""
