"""Whether one job can ever start: what its rules say of it, told by what would stand in its way."""
