"""The facts room."""
