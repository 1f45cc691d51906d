"""Whether one job can ever start, and why one of a cluster does not run, with the obstacles."""
