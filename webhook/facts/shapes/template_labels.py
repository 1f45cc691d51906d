"""The check of workloads whose selector does not select the pods of their own template.

The API server refuses such an object before it calls validating webhooks, so only commands that read files report it.

Source: k8s.io/kubernetes v1.36 pkg/apis/apps/validation/validation.go and pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.pods.node_selection import labels_meet_requirement
from webhook.facts.shapes.object_shape import OBJECT_SHAPE
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.fields import Part, Truth
from webhook.typed.objects import Object
from webhook.typed.pods import LabelSelector, PodTemplate, SelectorRequirement
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

TEMPLATE_LABELS: Final = OBJECT_SHAPE.rule(
    "object-shape/template-labels",
    title="The selector does not select the pods of the template",
    why=(
        "The API server refuses a workload whose spec.selector does not match the labels of its own pod template. The "
        "controller would not find the pods that it creates."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/apps/validation/validation.go",
    function="ValidatePodTemplateSpecForReplicaSet",
    level="warn",
)
SELECTING_KINDS: Final = frozenset(
    (("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job"))
)
_JOB: Final = ("batch", "Job")
_AT: Final = ("spec", "template", "metadata", "labels")
_OPERATORS: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""The operators of a label selector, and whether they need values."""


class _WorkloadSpec(Typed):
    """What the five kinds of workloads have in common; `manualSelector` is a field of batch/v1 JobSpec."""

    selector = Part(LabelSelector)
    manual_selector = Truth()
    template = Part(PodTemplate)


class _Workload(Object):
    """A workload that finds its pods by a selector."""

    spec = Part(_WorkloadSpec)


def check_labels_of_template(subject: Subject) -> Iterator[Problem]:
    """Report a selector that misses the pods of its template. The API server writes the selector of a Job, unless
    manualSelector is set.
    """
    if subject.mismatches:
        return
    spec = subject.typed(_Workload).spec
    if (subject.group_kind == _JOB and not spec.manual_selector) or _has_open_labels(spec):
        return
    labels = spec.template.metadata.labels
    unmet = [
        f"`{key}: {value}`"
        for key, value in spec.selector.match_labels.items()
        if labels.get(key) != value and not any(map(is_placeholder, (key, value, labels.get(key, ""))))
    ]
    for requirement in spec.selector.match_expressions:
        if not _is_valid(requirement):
            return
        if not labels_meet_requirement(labels, requirement):
            unmet.append(f"`{requirement.key} {requirement.operator}`")
    if unmet:
        more = f" and {counted(len(unmet) - 1, 'other requirement')}" if len(unmet) > 1 else ""
        message = f"do not match spec.selector, which asks for {unmet[0]}{more}, so the API server refuses the object"
        yield TEMPLATE_LABELS.problem(_AT, message, "give the pod template the labels that spec.selector asks for")


def _has_open_labels(spec: _WorkloadSpec) -> bool:
    """Return whether a template of the file may still fill in labels of the pods or the selector."""
    metadata, selector = spec.template.metadata, spec.selector
    return (
        spec.is_omitted("selector")
        or spec.is_omitted("template")
        or spec.template.is_omitted("metadata")
        or metadata.is_omitted("labels")
        or selector.is_omitted("matchLabels")
        or selector.is_omitted("matchExpressions")
    )


def _is_valid(requirement: SelectorRequirement) -> bool:
    """Return whether the API server can read a requirement: it compares no labels where one is invalid."""
    needs_values = _OPERATORS.get(requirement.operator)
    return needs_values is not None and needs_values == bool(requirement.values)
