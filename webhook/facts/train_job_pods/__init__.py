"""The pods that Kubeflow Trainer creates for a TrainJob: runtime, patches and plugins merged as each release
does it.
"""
