"""Kueue: whether a job is queued, whether its queue can ever admit it, and what its webhooks refuse."""
