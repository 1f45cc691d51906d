"""Volcano: what its webhooks refuse and set by default, and what they take and never run."""
