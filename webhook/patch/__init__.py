"""Applies JSON patches, ApplyConfigurations and strategic merge patches to plain JSON.

Knows JSON and the keys of lists, but not policies. Inputs are never changed. Results share unchanged parts with the
input, so that `is` finds them without a comparison.
"""
