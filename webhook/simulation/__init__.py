"""Says whether a job can ever start, why a job in a cluster does not run, and the obstacles."""
