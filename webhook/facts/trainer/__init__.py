"""Kubeflow Trainer: what is wrong with TrainJobs and runtimes, and what to do better."""
