"""The pods that Kubeflow Trainer creates for a TrainJob from runtime, patches and plugins, in each release."""
