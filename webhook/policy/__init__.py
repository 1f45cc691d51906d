"""The compiled set of policies, and which of them a request concerns."""
