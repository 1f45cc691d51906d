"""Volcano's objects without rules: its kinds, the defaults of its webhooks, and the plugins of a Job."""
