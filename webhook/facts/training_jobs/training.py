"""What an object of Kubeflow Trainer or a JobSet says by itself, before any runtime or controller is asked.

The fields that the installed release does not have, and for runtimes what JobSet will say of them. Never lacks
anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.jobset.validation import findings
from webhook.facts.pods.containers import mapping
from webhook.facts.shaped import shaped
from webhook.facts.trainer import overlays, steps
from webhook.facts.trainer.fields import unknown
from webhook.facts.trainer.processes import plugin
from webhook.facts.trainer.releases import minor
from webhook.paths import get
from webhook.releases import Release, shown
from webhook.workloads.podsets import group_kind

_RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")


def training(obj: JSON, version: Release, old: JSON = None, deadline: Deadline | None = None) -> JSON:
    """The fact `training` of one object, and of what it was before the change."""
    group, kind = group_kind(obj)
    is_trainer = group == "trainer.kubeflow.org"
    until = deadline or Deadline()
    shape = kind if is_trainer or group == "jobset.x-k8s.io" else ""
    now, before = shaped(obj, shape), shaped(old, shape)
    runtime = mapping(now.object.get("spec")) if is_trainer and kind in _RUNTIMES else None
    return {
        "release": shown(version),
        "minor": minor(version),
        "object": now.object,
        "old": before.object,
        "changes": _changes(now.object, before.object) if old is not None else [],
        "plugin": plugin(runtime) if runtime is not None else "",
        "fields": list(unknown(obj, kind, version, until)) if is_trainer else [],
        "notes": list(_notes(now.object, kind, version, until)) if shape else [],
        "odd": now.wrong,
    }


def _changes(obj: JSON, old: JSON) -> list[str]:
    """The fields of a spec that are not as they were."""
    now, before = mapping(obj.get("spec")), mapping(old.get("spec"))
    return [name for name in {**now, **before} if now.get(name) != before.get(name)]


def _notes(obj: JSON, kind: str, version: Release, deadline: Deadline) -> Iterator[JSON]:
    spec = mapping(obj.get("spec"))
    if kind in _RUNTIMES:
        yield from steps.runtime_notes(spec, version, deadline)
        for found in findings(mapping(get(spec, ("template", "spec"))), deadline):
            yield found.note(("spec", "template", "spec"))
    elif kind == "JobSet":
        for found in findings(spec, deadline):
            yield found.note(("spec",))
    elif kind == "TrainJob":
        yield from overlays.notes(obj, version)
