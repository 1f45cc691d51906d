"""Volumes of workloads with devices: who can mount them, and what is lost with a pod."""
