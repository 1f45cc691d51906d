"""Rules for the two annotations of a Queue for the plugin drf: its path in the hierarchy, and weights.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateHierarchicalAttributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano_objects.kinds import HIERARCHY, HIERARCHY_WEIGHTS
from webhook.facts.volcano_objects.types import Queue
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.wording import counted

VOLCANO_QUEUE_HIERARCHY_WEIGHTS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/hierarchy-weights",
    title="The path of a queue has a weight above 0 for each step.",
    why="Shares are computed of the weights.",
    function="validateHierarchicalAttributes",
)
HIERARCHY_PATH: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/hierarchy-path",
    title="The path of a queue does not lead to a step of another one's.",
    why="A step that has queues below it is not a queue itself.",
    function="validateHierarchicalAttributes",
)
HIERARCHY_WEIGHT_FINITE: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/hierarchy-weight-finite",
    title="The weights of a path are finite numbers.",
    why="Volcano takes NaN and Inf, and cannot compute shares of them.",
    refused_by="nobody; shares are undefined",
    level="warn",
    fails="silent",
)


_ANNOTATIONS: Final = ("metadata", "annotations")
_WEIGHTS: Final = (*_ANNOTATIONS, HIERARCHY_WEIGHTS)


def validate_hierarchical_attributes(queue: Queue, subject: Subject) -> Iterator[Problem]:
    """Yield a path without a weight for each step, or that other paths go through."""
    path, weights = _annotation_value(queue, HIERARCHY), _annotation_value(queue, HIERARCHY_WEIGHTS)
    if not (path or weights) or is_placeholder(path + weights):
        return
    steps, numbers = path.count("/") + 1, queue.charged_list(weights.split("/"))
    if steps != len(numbers):
        message = f"must have {counted(steps, 'weight')}, one for each step of {HIERARCHY}"
        yield VOLCANO_QUEUE_HIERARCHY_WEIGHTS.problem(_WEIGHTS, message, "write a weight for each step", weights)
        return
    wrong = next((index for index, text in enumerate(numbers) if not _is_positive_weight(text)), None)
    yield from _check_hierarchy_weight_finite(numbers[:wrong], weights)
    if wrong is None:
        yield from _check_hierarchy_path_is_no_prefix(queue, path, subject)
    else:
        message = f"must be numbers above 0, but one is `{numbers[wrong]}`"
        yield VOLCANO_QUEUE_HIERARCHY_WEIGHTS.problem(_WEIGHTS, message, "write a number above 0", weights)


def _annotation_value(queue: Queue, name: str) -> str:
    return queue.metadata.annotations.get(name, "")


def _check_hierarchy_weight_finite(numbers: Items[str], weights: str) -> Iterator[Problem]:
    for text in numbers:
        if not math.isfinite(_parse_weight(text)):
            message = f"has the weight `{text}`, which Volcano accepts, although no share can be computed with it"
            yield HIERARCHY_WEIGHT_FINITE.problem(_WEIGHTS, message, "write a finite number, such as 1", weights)


def _is_positive_weight(text: str) -> bool:
    return not _parse_weight(text) <= 0


def _parse_weight(text: str) -> float:
    """Return a number as Go's strconv.ParseFloat reads it; 0 for other texts."""
    try:
        return 0 if text != text.strip() else float(text)
    except ValueError:
        return 0


def _check_hierarchy_path_is_no_prefix(queue: Queue, path: str, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateHierarchicalAttributes would report: no other path begins with this one."""
    queues = subject.once(read_queues)
    below = (other for other in queues.all.values() if _annotation_value(other, HIERARCHY).startswith(f"{path}/"))
    other = next((other for other in below if other.name != queue.name), None)
    if other is None:
        return
    message = (
        f"must not be the beginning of the path of another queue, but the path of queue `{other.name}` is "
        f"`{_annotation_value(other, HIERARCHY)}`"
    )
    fix = f"end the path with the name of this queue, such as {path}/{queue.name}"
    if path.endswith(f"/{queue.name}"):
        fix = "write a path that no other path begins with"
    yield HIERARCHY_PATH.problem((*_ANNOTATIONS, HIERARCHY), message, fix, path)
