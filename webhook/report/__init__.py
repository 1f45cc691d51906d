"""Findings, answers and case results, and one file per format that they are written in."""
