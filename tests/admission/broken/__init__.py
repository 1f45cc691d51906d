"""A package of checks and a fact that raise an error, as one of our own bugs would."""
