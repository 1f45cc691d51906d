"""Defines findings, answers and case results, and writes them, with one module for each output format."""
