"""Findings, answers and case results, and one module for each output format."""
