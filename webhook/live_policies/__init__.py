"""Policies that a cluster stores as objects of claimgate.dev: compiled beside those of files, and told of in status."""
