"""Reads suites of policies in several formats, runs their cases, and compares answers with expectations."""
