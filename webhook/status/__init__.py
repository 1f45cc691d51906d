"""What a cluster says of an object: what controllers made of it, and what conditions, states and events mean.

Reads only, once, by owner references. Knows no rules and no policies: webhook/simulation joins it with those.
"""
