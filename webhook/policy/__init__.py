"""Compiles policies to a policy set, finds mistakes in them, and selects the policies for a request."""
