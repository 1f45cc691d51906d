"""Parses the text of a CEL expression to a tree. Knows no types and no values."""
