"""Kubeflow Trainer: rules and advice for TrainJobs and runtimes."""
