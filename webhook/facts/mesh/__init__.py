"""Service meshes: what their sidecars mean for pods that have to complete."""
