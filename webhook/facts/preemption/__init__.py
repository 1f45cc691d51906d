"""Workloads with devices and pods that may be preempted: on spot nodes, by other pods, or too quickly."""
