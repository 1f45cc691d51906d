"""Ray: what KubeRay refuses of its kinds, and what Ray is told of GPUs."""
