"""JobSet: what its controller and the API server refuse of a JobSet spec."""
