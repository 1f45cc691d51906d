"""The cel library room."""
