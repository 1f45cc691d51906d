"""The fields of workloads that KAI and YuniKorn read: queues, quota, fractions of GPUs, and groups of pods that start
together.

The checks report only what is certain from the source code of KAI and YuniKorn. The order and the nodes of pods are
not checked.
"""
