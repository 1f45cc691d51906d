"""Compiles policies that a cluster stores as objects of claimgate.dev, and combines these with policies of files. Reads
exceptions and params. Writes the results to the status of the objects.
"""
