"""Reads what a cluster reports about an object: the objects of its controllers, conditions, states and events.

Finds objects by their owner references, and reads each once. It has no rules and policies; webhook/simulation adds
these.
"""
