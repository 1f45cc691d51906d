"""Policies, bindings and the configuration file as people write them.

Their shape, what the API server refuses of them, their annotations, and what a configuration leaves alone.
"""
