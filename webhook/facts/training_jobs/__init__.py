"""Jobs of the Training Operator and the MPI Operator: their roles, settings and fields."""
