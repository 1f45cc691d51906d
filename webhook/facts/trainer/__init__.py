"""Kubeflow Trainer: a TrainJob merged with its runtime as each release does it, and what its plugins refuse."""
