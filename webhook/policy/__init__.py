"""The compiled set of policies, and the selection of those that a request concerns."""
