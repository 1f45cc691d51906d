"""Volcano: the rules and defaults of its webhooks, and advice about objects that it accepts and never runs."""
