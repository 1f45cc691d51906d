"""Ray: objects that KubeRay refuses, fields that KubeRay or Ray ignores, and the GPUs that Ray counts."""
