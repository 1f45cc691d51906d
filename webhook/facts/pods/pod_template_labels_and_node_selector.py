"""Validates labels and annotations of a pod, and its node selector.

Source: k8s.io/apimachinery v0.36 pkg/apis/meta/v1/validation/validation.go; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.pods.groups import POD_TEMPLATE
from webhook.name_faults import label_value_fault, qualified_name_fault
from webhook.names import USE_KEY, USE_VALUE, label_value_errors, qualified_name_errors
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.objects import Metadata
from webhook.typed.pods import PodSpec

NODE_SELECTOR: Final = POD_TEMPLATE.rule(
    "pod-template/node-selector",
    title="A nodeSelector has keys and values of labels.",
    why="No node has a label of another form.",
    function="ValidateLabels",
)
LABEL: Final = POD_TEMPLATE.rule(
    "pod-template/label",
    title="Labels and annotations of a pod have keys and values of the form of labels.",
    why="The API server refuses others, and no selector could name them.",
    source="k8s.io/apimachinery v0.36 pkg/apis/meta/v1/validation/validation.go",
    function="ValidateLabels",
)


def label_key_fault(key: str) -> str:
    """Return the fault of the key of a label, a selector or a toleration; "" if it is valid."""
    if qualified_name_errors(key) and not is_placeholder(key):
        return f"cannot be the key of a label because {qualified_name_fault(key)}"
    return ""


def validate_node_selector_labels(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report of spec.nodeSelector."""
    for path, fault, fix, value in _label_faults(pod.node_selector, pod.path("nodeSelector")):
        yield NODE_SELECTOR.problem(path, fault, fix, value)


def validate_labels(metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report of metadata.labels."""
    for path, fault, fix, value in _label_faults(metadata.labels, metadata.path("labels")):
        yield _label_problem(path, fault, fix, value)


def _label_problem(path: FieldPath, message: str, fix: str, value: str) -> Problem:
    return LABEL.problem(path, message, fix, value)


def _label_faults(labels: Mapping[str, str], at: FieldPath) -> Iterator[tuple[FieldPath, str, str, str]]:
    """Yield the path, fault, fix and value of invalid labels."""
    for key, value in labels.items():
        if fault := label_key_fault(key):
            yield at, fault, USE_KEY, key
        if label_value_errors(value) and not is_placeholder(value):
            yield (*at, key), f"cannot be the value of a label because {label_value_fault(value)}", USE_VALUE, value


def validate_annotations(metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems of ValidateAnnotations, which ignores case."""
    for key in metadata.annotations:
        if qualified_name_errors(key.lower()) and not is_placeholder(key):
            fault = f"cannot be the key of an annotation because {qualified_name_fault(key)}"
            yield _label_problem(metadata.path("annotations"), fault, USE_KEY, key)
