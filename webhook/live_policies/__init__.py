"""Objects of claimgate.dev that a cluster stores: compiles policies and combines them with policies of files, and reads
exceptions. The results are written to the status of the objects.
"""
