"""The patch room."""
