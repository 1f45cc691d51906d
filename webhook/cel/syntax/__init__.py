"""Text to tree: what a CEL expression looks like. Knows no types and no values."""
