"""JSON Patch, ApplyConfiguration and strategic merge on plain JSON.

Knows JSON and which lists are keyed by what; nothing of policies. Nothing here changes its input: results share
whatever a patch leaves alone, so that `is` tells untouched parts apart for nothing.
"""
