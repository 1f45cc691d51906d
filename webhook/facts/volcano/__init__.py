"""Volcano: the rules and defaults of its webhooks, and advice about objects that are accepted but never run."""
