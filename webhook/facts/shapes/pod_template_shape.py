"""Values of another type than their field has, which no API server and no controller can decode.

Everything else that is said of an object or a template takes it for decoded, so that these are the only checks that
are asked where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.shapes.groups import POD_TEMPLATE_SHAPE
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.problem import Problem
from webhook.problems.rule import Rule
from webhook.schema import Mismatch
from webhook.typed.collections import Items

POD_TEMPLATE_SHAPE_WRONG_TYPE: Final = POD_TEMPLATE_SHAPE.rule(
    "pod-template-shape/wrong-type",
    title="Every value of a pod template has the type of its field.",
    why=(
        "A Pod is decoded before anything else is looked at. A list where an object belongs, or a number where a "
        "string belongs, such as the value of an environment variable, makes the controller fail to create the pods. "
        "The other rules about pods are not evaluated for such a template."
    ),
)

POD: Final = frozenset({("", "Pod")})


def check_field_types_of_pod_template(subject: Subject) -> Iterator[Problem]:
    """Report values of a Pod, or of a pod template, that are not of their type."""
    return problems_of_wrong_types(subject, POD_TEMPLATE_SHAPE_WRONG_TYPE) if subject.mismatches else iter(())


def problems_of_wrong_types(subject: Subject, rule: Rule) -> Iterator[Problem]:
    """Yield a problem of `rule` for every value that has another type than its field, unless it was stored before."""
    for each in Items(subject.mismatches, subject.deadline):
        if not _was_same_before(each, subject.old_object):
            yield rule.problem(each.path, each.message, each.fix)


def _was_same_before(mismatch: Mismatch, old: JSON) -> bool:
    """Return whether the same value stood there before: an object that is stored with it must stay usable."""
    return old is not None and get(old, mismatch.at) == mismatch.value
