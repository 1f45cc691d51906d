"""The pods that an object creates: pod sets, containers, and the API server's rules for pod templates."""
