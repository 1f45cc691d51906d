"""Volcano's objects before any rule: its kinds, the defaults that its webhooks set, and the plugins of a Job."""
