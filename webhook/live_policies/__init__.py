"""Policies that a cluster stores as objects of claimgate.dev: compiled together with policies of files; the status has
the results.
"""
