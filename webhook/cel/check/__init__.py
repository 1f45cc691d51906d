"""Tree to types: what is wrong with an expression before it runs. Knows no values."""
