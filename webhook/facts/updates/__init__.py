"""Updates, drains and scaling of workloads with devices, beside the nodes of a whole cluster."""
