"""What nodes offer to pods with devices: resources, labels, taints, shares of GPUs, and nodes that Karpenter may add.

The package does not look at queues or quota.
"""
