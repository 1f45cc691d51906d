"""The fields of workloads that KAI and YuniKorn read: queues, quota, fractions of GPUs, and groups of pods that start
together.

Only what their source code makes certain is checked, not how they order and place pods.
"""
