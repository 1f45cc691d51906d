"""JobSet: what its webhook and the API server refuse in a JobSet spec."""
