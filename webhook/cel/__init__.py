"""The cel room."""
