"""JSON Patch, ApplyConfiguration and strategic merge on plain JSON.

Knows JSON and the keys of lists, but not policies. Nothing here changes its input: results share the
unchanged parts, so that `is` finds untouched parts at no cost.
"""
