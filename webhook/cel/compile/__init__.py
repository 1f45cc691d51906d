"""Checked tree to a Python function."""
