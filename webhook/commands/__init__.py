"""The verbs, one module each. A verb reads its input, calls the folders below, and writes the result."""
