"""The fields of workloads that KAI and YuniKorn read: queues, quota, fractions of GPUs, and groups of pods that start
together.

Knows only what their source makes certain; how they order and place pods is not known here.
"""
