"""Parses the text of a CEL expression to a tree."""
