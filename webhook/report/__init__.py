"""Defines findings, answers and case results, and writes them. Each output format has a module."""
