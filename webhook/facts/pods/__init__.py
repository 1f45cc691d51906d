"""Pods that an object makes: its pod sets, their containers, and what the API server refuses of a pod template."""
