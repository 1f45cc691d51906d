"""The admission room."""
