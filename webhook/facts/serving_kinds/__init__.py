"""Kinds that serve models: fields that KServe, Knative or LWS refuses, and fields with an unexpected effect."""
