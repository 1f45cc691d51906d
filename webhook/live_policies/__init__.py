"""Policies that a cluster stores as objects of claimgate.dev: compiled together with those of files, with their results
in status.
"""
