"""The offers of nodes for pods with devices: resources, labels, taints, shares of GPUs, and nodes that Karpenter may
add.

Knows no queues and no quota.
"""
