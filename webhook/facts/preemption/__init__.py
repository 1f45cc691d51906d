"""Workloads with devices whose pods are preempted: on spot nodes, by other pods, or with too little time to end."""
