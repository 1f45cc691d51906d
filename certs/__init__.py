"""Certificates: issue, rotate, store, inject. Never imports webhook."""
