"""The verbs, one module each: a command reads its input, calls the folders below and writes the result."""
