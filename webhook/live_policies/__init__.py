"""Compiles the policies that a cluster stores as objects of claimgate.dev, and combines them with policies of files.
The results are written to the status of the objects.
"""
