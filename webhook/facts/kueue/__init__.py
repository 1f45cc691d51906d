"""Kueue: whether a job is queued, whether its queue can ever admit the job, and what Kueue's webhooks refuse."""
