"""Kinds and labels that several packages of facts use, with their API groups and, where needed, versions."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind

NODE: Final = GroupVersionKind("", "v1", "Node")
POD: Final = ("", "Pod")
DEPLOYMENT: Final = ("apps", "Deployment")
STATEFUL_SET: Final = ("apps", "StatefulSet")
JOB: Final = ("batch", "Job")
CRON_JOB: Final = ("batch", "CronJob")
JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
RAY_JOB: Final = ("ray.io", "RayJob")
PRIORITY_CLASS: Final = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
RUNTIME_CLASS: Final = GroupVersionKind("node.k8s.io", "v1", "RuntimeClass")
TRAINER: Final = "trainer.kubeflow.org"
TRAIN_JOB: Final = (TRAINER, "TrainJob")
TRAINING_RUNTIMES: Final = frozenset(((TRAINER, "TrainingRuntime"), (TRAINER, "ClusterTrainingRuntime")))
LEADER_WORKER_SET: Final = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
KUEUE_QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
"""The label with the queue of a job."""
