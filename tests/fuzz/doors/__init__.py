"""Compares `claimgate replay` with a running server. The same review and context give the same response."""
