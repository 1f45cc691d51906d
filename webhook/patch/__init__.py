"""JSON Patch, ApplyConfiguration and strategic merge on plain JSON.

Knows JSON and which lists are keyed by what; nothing of policies. Nothing here changes its input: results share the
unchanged parts, so that `is` finds untouched parts at no cost.
"""
