"""Whether one job can ever start, and why one of a cluster does not run: told by what stands in its way."""
