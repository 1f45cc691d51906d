"""Kinds that serve models: fields that KServe, Knative and LeaderWorkerSet refuse, or read in an unexpected way."""
