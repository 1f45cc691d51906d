"""Reads policies, bindings and the configuration file as people write them.

Knows their fields, the rules of API servers for them, and their annotations. Also knows the objects that a
configuration ignores, and exceptions.
"""
