"""The policy room."""
