"""Policies and bindings as they are written: their shape, what the API server refuses of them, their annotations."""
