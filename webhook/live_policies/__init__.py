"""Compiles the policies that a cluster stores as objects of claimgate.dev, combines them with policies of files, and
writes the results to the status of the objects.
"""
