"""The pods that Kubeflow Trainer makes of a TrainJob: runtime, patches and plugins merged as each release does it."""
