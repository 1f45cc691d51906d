"""The fields of workloads that KAI and YuniKorn read: queues, quota, fractions of GPUs, and groups of pods that start
together.

The order in which pods start, and the nodes that they get, are not checked.
"""
