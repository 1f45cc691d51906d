"""The workloads room."""
