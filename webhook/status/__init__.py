"""Reads what a cluster reports about an object: the objects of its controllers, conditions, states and events.

The package finds objects by owner references, and reads each object once. It has no rules or policies;
webhook/simulation adds these.
"""
