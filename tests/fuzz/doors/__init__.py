"""The machinery of `claimgate replay` against a running server: the same review and context give the same response."""
