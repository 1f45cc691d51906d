"""Certificates of the webhook: issuing, planning their rotation, keeping them, telling the API server whom to trust.

Stands by itself: imports nothing of the webhook, so that it can run as a Job with no policies at all.
"""
