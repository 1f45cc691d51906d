"""Versions of APIs that are served no more."""
