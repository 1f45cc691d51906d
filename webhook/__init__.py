"""claimgate: an admission webhook for AI and GPU workloads on Kubernetes."""

__version__ = "0.2.0"
