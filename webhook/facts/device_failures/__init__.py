"""What a workload with devices does when a node, a device or a container fails."""
