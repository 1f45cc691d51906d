"""Volumes of workloads with devices: the pods that can mount them, and the data that is lost with a pod."""
