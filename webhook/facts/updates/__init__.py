"""Updates, drains and scaling of workloads with devices, compared with the nodes of a whole cluster."""
