"""The fact `training`: what a training object says by itself, before any runtime or controller is asked.

For Kubeflow Trainer's kinds the fields that the installed release does not have, and for runtimes what JobSet will say
of them; for the Training Operator's and the MPI Operator's kinds their settings, and their roles: pods, devices and how
processes start. Never lacks anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts import steps
from webhook.facts.fields import unknown
from webhook.facts.jobset import findings
from webhook.facts.processes import plugin
from webhook.facts.roles import KINDS, Roles, roles
from webhook.facts.settings import Settings, settings
from webhook.paths import get
from webhook.workloads.podsets import group_kind

_RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")


def training(obj: JSON, version: tuple[int, int]) -> JSON:
    """The fact of one object."""
    group, kind = group_kind(obj)
    is_trainer, is_operator = group == "trainer.kubeflow.org", group == "kubeflow.org"
    runtime = get(obj, ("spec",)) if is_trainer and kind in _RUNTIMES else None
    known = roles(obj, kind) if is_operator and kind in KINDS else Roles()
    said = settings(obj, kind) if is_operator and kind in KINDS else Settings()
    return {
        "release": ".".join(map(str, version)),
        "minor": version[1] if version[0] == 2 else 99 if version[0] > 2 else 0,
        "plugin": plugin(runtime) if runtime is not None else "",
        "fields": list(unknown(obj, kind, version)) if is_trainer else [],
        "notes": list(_notes(runtime)) if runtime is not None else [],
        "roles": known.found,
        "name": known.name,
        "settings": said.values,
        "unfilled": said.unfilled,
        "odd": said.odd + known.odd,
        "open": known.open,
        "missing": [],
    }


def _notes(runtime: JSON) -> Iterator[JSON]:
    yield from steps.runtime_notes(runtime)
    for found in findings(get(runtime, ("template", "spec")) or {}):
        yield found.note(("spec", "template", "spec"))
