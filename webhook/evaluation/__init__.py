"""One request: which objects a policy is about, what its expressions say, what mutations make of it."""
