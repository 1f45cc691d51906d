"""Writes log lines as JSON or text, in a separate thread."""
