"""Values of another type than their field has, which no API server and no controller can decode.

Everything else that is said of an object or a template takes it for decoded, so that these are the only checks that
are asked where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Check
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.shapes.groups import OBJECT_SHAPE, POD_TEMPLATE_SHAPE
from webhook.facts.shapes.value_checks import validate_trainer, validate_volcano
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.lookups import INSTALLED
from webhook.facts.volcano_objects.kinds import KINDS as VOLCANO
from webhook.facts.volcano_objects.kinds import OF_NAMESPACES
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
OBJECT_SHAPE_WRONG_TYPE: Final = OBJECT_SHAPE.rule(
    "object-shape/wrong-type",
    title="Every value of an object has the type of its field.",
    why=(
        "The API server refuses an object that is not of the types of its kind. In a file, nobody has checked that "
        "yet. The other rules are not evaluated for such an object."
    ),
)

POD: Final = frozenset({("", "Pod")})


def decode_pod_template(subject: Subject) -> Iterator[Problem]:
    """What of a Pod, or of a pod template, is not of its type."""
    return _wrong_types(subject, POD_TEMPLATE_SHAPE_WRONG_TYPE) if subject.mismatches else iter(())


def decode_object(subject: Subject) -> Iterator[Problem]:
    """What of any other object is not of its type, outside its pod templates."""
    if subject.group_kind not in POD:
        yield from _wrong_types(subject, OBJECT_SHAPE_WRONG_TYPE)


def _wrong_types(subject: Subject, rule: Rule) -> Iterator[Problem]:
    for each in Items(subject.mismatches, subject.deadline):
        if not _was_stored(each, subject.old_object):
            yield rule.problem(each.path, each.message, each.fix)


def _was_stored(mismatch: Mismatch, old: JSON) -> bool:
    """Whether the same value stood there before: an object that is stored with it must stay usable."""
    return old is not None and get(old, mismatch.at) == mismatch.value


CHECKS: Final = (
    Check(group="pod-template-shape", run=decode_pod_template, kinds=POD),
    Check(group="object-shape", run=decode_object),
    Check(group="object-shape", run=validate_trainer, kinds=TRAINING_RUNTIMES | {TRAIN_JOB}, lookups=(INSTALLED,)),
    Check(group="object-shape", run=validate_volcano, kinds=VOLCANO, lookups=(OF_NAMESPACES,)),
)
