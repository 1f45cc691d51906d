"""claimgate: an admission webhook for AI and GPU workloads on Kubernetes."""

__version__ = "0.1.0"
