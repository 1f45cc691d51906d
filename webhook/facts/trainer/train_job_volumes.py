"""The API server's rules for volumes of the pods that a TrainJob gets from its runtime.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation. The pods stand nowhere in the TrainJob: a problem of the
runtime's own pods is told where the TrainJob names it, another where it has its patches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.trainer.generated_pods import (
    GeneratedPods,
    sentence_about_several_sources,
    source_fields_of,
    sources_by_name,
)
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.pods import Container

VOLUME_SOURCE: Final = TRAIN_JOB.rule(
    "train-job/volume-source",
    title="A volume of the merged pod has one source.",
    why=(
        "A patch that gives a volume of the runtime another source adds it to the first, and the API server refuses "
        "the pods."
    ),
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
VOLUME_EXISTS: Final = TRAIN_JOB.rule(
    "train-job/volume-exists",
    title="Containers mount volumes that the merged pod has.",
    why="The API server refuses the pods otherwise.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
STATUS_VOLUME: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/status-volume",
    title="No container of another step mounts the volume by which pods report their status.",
    why="Trainer adds it only to the pods of the trainer, and only with its alpha feature TrainJobStatus.",
    refused_by="the API server, when the pods are created",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/trainjobstatus/trainjobstatus.go",
    fails="controller",
)

_STATUS: Final = "kubeflow-trainer-token"
"""The volume by which pods report the status of the job."""


def validate_volume_sources(pods: GeneratedPods) -> Iterator[Problem]:
    """Yield volumes of the merged pod with several sources."""
    wrong = [volume for volume in pods.spec.volumes if len(source_fields_of(volume)) > 1]
    before = sources_by_name(pods.before.pod.volumes) if wrong and pods.before is not None else {}
    for volume in wrong:
        yield VOLUME_SOURCE.problem("", *sentence_about_several_sources(volume, "volume", before, pods))


def validate_mounts(container: Container, volumes: Collection[str], pods: GeneratedPods) -> Iterator[Problem]:
    """Yield mounts of volumes that the pod does not have."""
    for mount in container.volume_mounts:
        name = mount.name
        mounts = f"container `{container.name}` of {pods} mounts volume `{name}`, which"
        if name == _STATUS and name not in volumes:
            message = f"{mounts} only pods of the trainer step have, and only with the feature TrainJobStatus"
            yield STATUS_VOLUME.problem("", message, "remove the mount in the runtime")
        elif name not in volumes and not is_placeholder(name):
            fix = f"add a volume `{name}` to the pod, in the runtime or a patch, or correct the name in the mount"
            yield VOLUME_EXISTS.problem("", f"{mounts} the pod does not have", fix)
