"""Policies, bindings and the configuration file as people write them.

Their shape, the rules of the API server, their annotations, and the objects that a configuration ignores.
"""
