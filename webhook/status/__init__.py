"""The reports of a cluster about an object: the objects of its controllers, and the meaning of conditions, states and
events.

Reads only, once, by owner references. Knows no rules and no policies: webhook/simulation joins it with those.
"""
