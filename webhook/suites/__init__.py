"""Suites of policies: reading four formats of them into the same cases, and judging what came out of each."""
