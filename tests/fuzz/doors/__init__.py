"""Compares `claimgate replay` with a running server: the same review and context give the same response."""
