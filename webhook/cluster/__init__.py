"""The cluster room."""
