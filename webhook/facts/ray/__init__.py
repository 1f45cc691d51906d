"""Ray: the mistakes that KubeRay refuses, and the GPUs that Ray sees."""
