"""Applies JSON patches, ApplyConfigurations and strategic merge patches to plain JSON.

Inputs are never changed. Results share unchanged parts with the input, so that `is` finds them.
"""
