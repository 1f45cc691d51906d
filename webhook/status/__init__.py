"""Reads what a cluster reports about an object: the objects of its controllers, conditions, states and events.

Finds objects by their owner references, and reads each once. Has no rules and policies; webhook/simulation adds these.
"""
