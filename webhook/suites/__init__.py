"""Reads four formats of policy suites into the same cases, runs the cases and judges their answers."""
