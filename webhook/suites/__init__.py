"""Reads suites of policies in several formats, runs their cases and compares the answers with the expectations."""
