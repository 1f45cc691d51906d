"""A package with a check and a fact that raise an error, as a bug of claimgate would."""
