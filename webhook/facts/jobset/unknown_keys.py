"""Keys of JobSet that no JobSet reads: a misspelt one changes nothing, and nobody says so.

Source: kubernetes-sigs/jobset@08dfbdfd api/jobset/v1alpha2/jobset_types.go and pkg/constants/constants.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.jobset.groups import JOB_SET
from webhook.facts.view import ClusterView
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec
from webhook.typed.objects import Metadata
from webhook.wording import did_you_mean

UNKNOWN_KEY: Final = JOB_SET.rule(
    "job-set/unknown-key",
    title="An annotation or label with a domain of JobSet is one that JobSet knows.",
    why=(
        "Exclusive placement is asked for by annotations. A misspelt one is stored and ignored, and the jobs share "
        "their racks with others."
    ),
    refused_by="nobody; the key has no effect",
    source="kubernetes-sigs/jobset@08dfbdfd api/jobset/v1alpha2/jobset_types.go",
    level="warn",
    fails="silent",
)

_ALPHA: Final = "alpha.jobset.sigs.k8s.io/"
_STABLE: Final = "jobset.sigs.k8s.io/"
_KEYS: Final = (
    *(f"{_ALPHA}{name}" for name in ("exclusive-topology", "node-selector", "namespaced-job", "no-schedule")),
    *(f"{_STABLE}{name}" for name in ("jobset-name", "jobset-uid", "coordinator", "priority")),
    *(f"{_STABLE}{name}" for name in ("replicatedjob-name", "replicatedjob-replicas", "global-replicas")),
    *(f"{_STABLE}{name}" for name in ("job-index", "job-global-index", "job-key", "job-group-index")),
    *(f"{_STABLE}{name}" for name in ("group-name", "group-replicas", "restart-attempt", "job-restart-attempt")),
    *(f"{_STABLE}{name}" for name in ("in-place-restart-attempt", "disable-in-place-restart")),
)
"""The keys that JobSet reads or sets."""


def advise_unknown_keys(metadata: Metadata, job_set: JobSetSpec, view: ClusterView) -> Iterator[Problem]:
    """Warn of unknown keys of a JobSet and of its jobs and pods; `view` bounds the search for near ones."""
    yield from _check_unknown_keys(metadata, view)
    for job in job_set.replicated_jobs:
        yield from _check_unknown_keys(job.template.metadata, view)
        yield from _check_unknown_keys(job.pod_template.metadata, view)


def _check_unknown_keys(metadata: Metadata, view: ClusterView) -> Iterator[Problem]:
    for field, values in (("annotations", metadata.annotations), ("labels", metadata.labels)):
        for key in values:
            if key.startswith((_ALPHA, _STABLE)) and key not in _KEYS and not is_placeholder(key):
                message = "has no effect because JobSet does not know this key"
                yield UNKNOWN_KEY.problem(
                    metadata.path(field, key),
                    message,
                    did_you_mean(_probably_intended_key(key, view), f"remove the {field[:-1]}"),
                )


def _probably_intended_key(key: str, view: ClusterView) -> str:
    """Return the key that was probably meant: with another prefix, or nearly spelt so."""
    name = key.partition("/")[2]
    return next((known for known in _KEYS if known.endswith(f"/{name}")), "") or view.nearest(key, _KEYS)
