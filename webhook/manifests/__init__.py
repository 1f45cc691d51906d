"""Reads policies, bindings and the configuration file as people write them.

The package has the fields and annotations of these objects, and the rules of API servers about them. leave_alone.py
decides which objects a configuration ignores, and policy_exceptions.py reads PolicyExceptions.
"""
