"""Fields of the kinds that serve models with a value that the schema or the webhook of the kind refuses.

field_values.yaml declares the fields. The checks of the kinds report what depends on several fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.shapes.object_shape import problem_of_breach
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.schema.values import Breach, declarations_of_file

FIELD_VALUE: Final = SERVING_KIND.rule(
    "serving-kind/field-value",
    title="A field of a kind that serves models has a value that is refused",
    why=(
        "The CustomResourceDefinition declares types, ranges and allowed values, and the webhook has more rules. The "
        "object is refused when you create it."
    ),
    refused_by="the API server, when the object is created",
    source="kubernetes-sigs/lws@060ab4d config/crd/bases; kserve/kserve@aaac4e294 config/crd/full",
)
_DECLARATIONS: Final = Path(__file__).with_name("field_values.yaml")


def check_field_values(subject: Subject) -> Iterator[Problem]:
    """Report values that are refused, except values that were stored before."""
    known = set() if subject.old_object is None else set(map(_key, _breaches(subject.old_object, subject)))
    for each in _breaches(subject.object, subject):
        if _key(each) not in known:
            yield problem_of_breach(each, FIELD_VALUE)


def _breaches(obj: JSON, subject: Subject) -> Iterator[Breach]:
    breaches = declarations_of_file(_DECLARATIONS).breaches(obj, subject.group_kind[1], (), subject.deadline)
    return (each for each in breaches if each.at not in subject.omitted)


def _key(breach: Breach) -> tuple[str, str, str]:
    return breach.what, str(breach.at), str(breach.given)
