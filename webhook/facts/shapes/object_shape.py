"""The checks of values with a wrong type, and of values that a CustomResourceDefinition refuses.

No API server and no controller can decode a value of the wrong type. Other checks need a decoded object, so for an
object that cannot be decoded only the checks of types run. values.yaml declares the kinds of Trainer, and volcano.yaml
declares the kinds of Volcano. An API server validates the schema after mutating webhooks, so an object of Volcano is
checked with the defaults of Volcano's webhook.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.releases import Release
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    LENGTHS,
    PATCHES,
    QUEUES,
    find_trainer_release,
)
from webhook.facts.volcano_objects.defaults import object_with_defaults
from webhook.facts.volcano_objects.types import JOB as VOLCANO_JOB
from webhook.rules.problem import Problem
from webhook.rules.rule import BY_POD_VALIDATION, Rule, RuleGroup
from webhook.schema import Mismatch
from webhook.schema.decode import described
from webhook.schema.values import Breach, declarations_of_file
from webhook.text.wording import counted, did_you_mean, shown
from webhook.typed.collections import Items

POD_TEMPLATE_SHAPE: Final = RuleGroup(
    "pod-template-shape",
    refused_by=BY_POD_VALIDATION,
    source="k8s.io/apimachinery v0.36 pkg/runtime/serializer/json/json.go",
    fails="controller",
)
"""Values with a wrong type, according to Kubernetes or a published CustomResourceDefinition."""
OBJECT_SHAPE: Final = RuleGroup(
    "object-shape",
    refused_by="the API server, when the object is created",
    source="k8s.io/apiextensions-apiserver v0.36 pkg/apiserver/validation/validation.go",
    fails="create",
)
POD_TEMPLATE_SHAPE_WRONG_TYPE: Final = POD_TEMPLATE_SHAPE.rule(
    "pod-template-shape/wrong-type",
    title="A value of the pod template has the wrong type",
    why=(
        "The controller cannot decode the template, so it creates no pod. Other rules about pods are not evaluated for "
        "this template."
    ),
)
REQUIRED: Final = OBJECT_SHAPE.rule(
    "object-shape/required",
    title="A field that the CustomResourceDefinition requires is missing",
    why="The API server refuses an object without a required field or with an empty name.",
)
OUT_OF_RANGE: Final = OBJECT_SHAPE.rule(
    "object-shape/out-of-range",
    title="The number is outside the range that the CustomResourceDefinition allows",
    why="The API server refuses an object with a number below the minimum or above the maximum of the field.",
)
LENGTH: Final = OBJECT_SHAPE.rule(
    "object-shape/length",
    title="The list or text is too long",
    why="The API server refuses lists and texts that are longer than the CustomResourceDefinition allows.",
)
DUPLICATE: Final = OBJECT_SHAPE.rule(
    "object-shape/duplicate",
    title="Two entries of the list have the same name",
    why="The API server finds entries of this list by name, so it refuses a second entry with the same name.",
)
FORMAT: Final = OBJECT_SHAPE.rule(
    "object-shape/format",
    title="The text has an invalid format",
    why="The API server refuses a text that does not have the format of the CustomResourceDefinition.",
)
UNSUPPORTED_VALUE: Final = OBJECT_SHAPE.rule(
    "object-shape/unsupported-value",
    title="A field has a value that the CustomResourceDefinition does not list",
    why="The API server refuses a value that the CustomResourceDefinition does not list.",
)
UNKNOWN_FIELD: Final = OBJECT_SHAPE.rule(
    "object-shape/unknown-field",
    title="The object has a field that does not exist",
    why=(
        "The API server drops the field, sometimes with a warning. kubectl refuses the object unless validation is off."
    ),
    refused_by="kubectl; the API server drops the field",
    level="warn",
    fails="silent",
)
FRACTION: Final = OBJECT_SHAPE.rule(
    "object-shape/fraction",
    title="A fraction is not written as a string",
    why=(
        "The API server accepts only whole numbers and strings here. A mutating webhook may still turn the number into "
        "a string."
    ),
    level="warn",
)
OBJECT_SHAPE_WRONG_TYPE: Final = OBJECT_SHAPE.rule(
    "object-shape/wrong-type",
    title="A value has the wrong type",
    why="The API server refuses the object. Other rules are not evaluated for the object.",
    level_in_tests="advice",
)
POD_KIND: Final = frozenset({("", "Pod")})
_MOST_NAMES: Final = 4
_MAP_FIELDS: Final = frozenset(("data", "stringData", "labels", "annotations"))
"""Fields with keys that users choose."""
_SPEC: Final = ("spec",)
_TEMPLATE: Final = ("spec", "template")
"""A field of Kubernetes' Jobs that Volcano Jobs do not have. The check of missing tasks reports this field."""
_TRAINER: Final = Path(__file__).with_name("values.yaml")
_VOLCANO: Final = Path(__file__).with_name("volcano.yaml")
_FIELDS_BY_RELEASE: Final[tuple[tuple[FieldPath, Release], ...]] = (
    (("spec", "runtimePatches"), PATCHES),
    (("spec", "activeDeadlineSeconds"), PATCHES),
    (("spec", "mlPolicy", "flux"), FLUX_AND_MORE),
    (("spec", "mlPolicy", "torch", "envInjection"), INJECTION),
    (("spec", "podGroupPolicy", "volcano"), QUEUES),
)
"""Fields of Trainer, each with the first release that has the field. Older releases drop the field."""


def check_field_types_of_pod_template(subject: Subject) -> Iterator[Problem]:
    """Report values of a Pod, or of a pod template, with a wrong type."""
    return problems_of_wrong_types(subject, POD_TEMPLATE_SHAPE_WRONG_TYPE) if subject.mismatches else iter(())


def problems_of_wrong_types(subject: Subject, rule: Rule) -> Iterator[Problem]:
    """Yield a problem of `rule` for every value with a wrong type, unless the stored object already has the value.

    The values of one field in the items of a list, such as `env`, have one problem if they need the same fix. The
    values of one map, such as `labels`, have one problem, too.
    """
    joined: dict[tuple[object, ...], list[Mismatch]] = {}
    for each in Items(subject.mismatches, subject.deadline):
        if not _was_same_before(each, subject.old_object):
            at = _place_of_similar_values(each)
            joined.setdefault((at, each.expected, type(each.value)), []).append(each)
    for first, *others in joined.values():
        is_same = all(each.value == first.value for each in others)
        message = first.message if is_same else f"must be {first.expected}, not {_type_in_words(first.value)}"
        problem = rule.problem(first.path, message, first.fix)
        yield structs.replace(problem, also=tuple(each.path for each in others)) if others else problem


def _place_of_similar_values(value: Mismatch) -> tuple[str | int | None, ...]:
    """Return what the paths of similar values have in common, as a key.

    For a value of a map, the key has no key of the map. For other values with a fix, the key has no last index.
    """
    at = value.at
    if len(at) > 1 and at[-2] in _MAP_FIELDS:
        return (*at[:-1], value.fix)
    if not value.fix:
        return at
    last = next((number for number in reversed(range(len(at))) if isinstance(at[number], int)), None)
    return at if last is None else (*at[:last], None, *at[last + 1 :])


def _type_in_words(value: JSON) -> str:
    """Return the type of a value for a message, such as "true or false" or "a number"."""
    if isinstance(value, bool):
        return "true or false"
    words: dict[type, str] = {str: "a string", dict: "an object", list: "a list"}
    return words.get(type(value), "a number")


def _was_same_before(mismatch: Mismatch, old: JSON) -> bool:
    """Return whether the old object had the same value. Users must still be able to update a stored object."""
    return old is not None and get(old, mismatch.at) == mismatch.value


def check_values_of_trainer_object(subject: Subject) -> Iterator[Problem]:
    """Report invalid values of a TrainJob or a runtime, for the installed release of Trainer."""
    yield from _check_values_against_schema_file(subject, subject.object, _TRAINER)


def _is_in_release_schema(breach: Breach, release: Release) -> bool:
    """Return whether the schema of a release has the rule that a value breaks. Releases 2.0 and 2.1 limit no length,
    and later releases add fields.
    """
    if breach.what in ("tooMany", "tooLong") and release < LENGTHS:
        return False
    return not any(release < since and breach.at[: len(at)] == at for at, since in _FIELDS_BY_RELEASE)


def check_values_of_volcano_object(subject: Subject) -> Iterator[Problem]:
    """Report invalid values of an object of Volcano."""
    if not subject.mismatches:
        yield from _check_values_against_schema_file(subject, subject.once(object_with_defaults), _VOLCANO)


def _check_values_against_schema_file(subject: Subject, obj: JSON, file: Path) -> Iterator[Problem]:
    """Report all invalid values of an object, except values that were stored before."""
    if subject.mismatches:
        return
    known = (
        {each.key for each in _breaches_of_values(subject.old_object, subject, file)}
        if subject.old_object is not None
        else set()
    )
    new = [each for each in _breaches_of_values(obj, subject, file) if each.key not in known]
    for each in _joined_unknown_fields(new):
        if not (each.at == _TEMPLATE and subject.group_kind == VOLCANO_JOB and not obj["spec"].get("tasks")):
            yield problem_of_breach(each)


def _joined_unknown_fields(breaches: Sequence[Breach]) -> Iterator[Breach]:
    """Yield the breaches. Several unknown fields at the top of the object are joined to one breach.

    An object with several unknown fields probably has another kind. If the spec is missing too, the breach about the
    spec names the unknown fields.
    """
    unknown = [each for each in breaches if each.what == "unknownField" and len(each.at) == 1]
    if len(unknown) < 2:
        yield from breaches
        return
    names = ", ".join(f"`{each.at[0]}`" for each in unknown[:_MOST_NAMES])
    more = f" and {counted(len(unknown) - _MOST_NAMES, 'other')}" if len(unknown) > _MOST_NAMES else ""
    spec = next((each for each in breaches if each.what == "missing" and each.at == _SPEC), None)
    description = f"{names}{more} do not exist in this kind, so the API server drops or refuses them"
    yield structs.replace(spec or Breach(what="unknownField", at=()), given=description)
    yield from (each for each in breaches if each is not spec and each not in unknown)


def _breaches_of_values(obj: JSON, subject: Subject, file: Path) -> Iterator[Breach]:
    breaches = declarations_of_file(file).breaches_of_decoded(obj, subject.group_kind[1], (), subject.deadline)
    release = find_trainer_release(subject) if file == _TRAINER else None
    for each in breaches:
        if each.at not in subject.omitted and (release is None or _is_in_release_schema(each, release)):
            yield each


def problem_of_breach(breach: Breach, rule: Rule | None = None) -> Problem:
    """Return the problem that reports an invalid value.

    Args:
        breach: the path of the value, and the kind of mistake.
        rule: the rule to report; by default, the rule of this module for this kind of mistake.
    """
    match breach.what:
        case "missing":
            message = f"must be set; {breach.given}" if breach.given else "must be set"
            return (rule or REQUIRED).problem(breach.at, message, f"set {breach.expected}")
        case "duplicate":
            message = f"is also the name of the entry at index {breach.expected}"
            return (rule or DUPLICATE).problem(
                breach.at, message, "join the two entries, or correct the name", breach.given
            )
        case "tooMany":
            given = f"{breach.given} entries"
            message = f"are more than the {breach.expected} that are allowed"
            return (rule or LENGTH).problem(
                breach.at,
                message,
                f"remove {counted(int(breach.given) - int(breach.expected), 'entry', 'entries')}",
                shown=given,
            )
        case "tooLong":
            given = f"{len(breach.given.encode())} bytes"
            message = f"are more than the {breach.expected} that are allowed"
            return (rule or LENGTH).problem(breach.at, message, "shorten the text", shown=given)
        case "tooFew":
            length, least = int(breach.given), int(breach.expected)
            length_text = f"has {length}" if length else "is empty"
            message = f"{length_text}, but must have at least {counted(least, 'entry', 'entries')}"
            fix = f"add {counted(least - length, 'entry', 'entries')}"
            return (rule or LENGTH).problem(breach.at, message, fix)
        case "notOneOf":
            fix = did_you_mean(breach.nearest, "use one of these")
            return (rule or UNSUPPORTED_VALUE).problem(
                breach.at, f"must be one of {breach.expected}", fix, breach.given
            )
        case "badName":
            return (rule or FORMAT).problem(
                breach.at, _message_with_expected_value(breach), _fix_with_examples(breach), breach.given
            )
        case "unknownField" if not breach.at:
            return (rule or UNKNOWN_FIELD).problem((), str(breach.given), "remove these fields, or move them into spec")
        case "unknownField":
            message = "is not a field of this kind, so the API server drops the field or refuses the object"
            fix = did_you_mean(breach.nearest, "remove the field")
            return (rule or UNKNOWN_FIELD).problem(breach.at, message, fix)
        case "notQuantity":
            return (rule or OUT_OF_RANGE).problem(
                breach.at, _message_with_expected_value(breach), _fix_with_examples(breach), breach.given
            )
        case "wrongType":
            given = described(breach.given)
            if rule is not None:
                return rule.problem(breach.at, f"must be {breach.expected}, not {given}", f"write {breach.expected}")
            message = f"should be {breach.expected}, not {given}, which the API server refuses"
            return FRACTION.problem(breach.at, message, "write the number as a string")
        case _:
            message = f"must be {breach.expected}"
            return (rule or OUT_OF_RANGE).problem(breach.at, message, "set a number in this range", shown(breach.given))


def _message_with_expected_value(breach: Breach) -> str:
    return f"must be {breach.expected.partition(' such as ')[0]}"


def _fix_with_examples(breach: Breach) -> str:
    kind, _, examples = breach.expected.partition(" such as ")
    return f"write a value such as {examples}" if examples else f"write {kind}"


def check_field_types_of_object(subject: Subject) -> Iterator[Problem]:
    """Report values of the wrong type outside pod templates."""
    if subject.group_kind not in POD_KIND:
        yield from problems_of_wrong_types(subject, OBJECT_SHAPE_WRONG_TYPE)
