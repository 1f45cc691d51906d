"""Kinds that serve models: what KServe, Knative and LeaderWorkerSet refuse, or read otherwise than it looks."""
