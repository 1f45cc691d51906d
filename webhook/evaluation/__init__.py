"""One request: the objects of a policy, the results of its expressions and mutations."""
