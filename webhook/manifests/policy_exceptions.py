"""Reads PolicyExceptions of claimgate.dev/v1alpha1, with which the owner of a namespace lets objects break rules.

A PolicyException has the fields of an exception of `claimgate.yaml`. A PolicyException has an effect only if
`policyExceptions` in `claimgate.yaml` allows the exception. Users write PolicyExceptions, so their size, their number
and the work for their patterns are bounded. The module does not know which rules exist: policy/configured_rules.py
checks the names.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Final, TypeAlias, TypeVar

from msgspec import Struct
from pydantic import Field, ValidationError

from webhook.apimachinery.attributes import JSON, GroupVersionKind, parse_group_kind
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.cluster.interest import Interest, interest_in_fields
from webhook.cluster.lookup import OMITTED, namespace_and_name
from webhook.errors import UnreadPartError
from webhook.manifests.claimgate_kinds import API_VERSION, GROUP, POLICY_EXCEPTION, VERSION
from webhook.manifests.configuration import ExceptionRecord, FileConfiguration
from webhook.manifests.label_selectors import Labels, compile_selector
from webhook.manifests.models import LabelSelector, ShapeError, without_nulls
from webhook.manifests.validation import selector_errors
from webhook.text.model_errors import describe_mistake_of_model
from webhook.text.wording import counted, named
from webhook.yamltext.unread import refuse_unread_part

POLICY_EXCEPTIONS: Final = GroupVersionKind(GROUP, VERSION, POLICY_EXCEPTION)
MOST_BYTES: Final = 8 << 10
"""The maximum number of bytes of an object as JSON. Fifty ids of rules and fifty names need half of this."""
MOST_IN_NAMESPACE: Final = 50
"""The most PolicyExceptions of a namespace that have an effect. The oldest PolicyExceptions have an effect. Each review
that breaks a rule reads all PolicyExceptions with an effect.
"""
READ_S: Final = 0.000_2
"""Seconds to read one object. The largest object takes half of this time."""
INTEREST: Final[Interest] = Interest(
    POLICY_EXCEPTIONS,
    interest_in_fields(
        POLICY_EXCEPTIONS, "metadata.creationTimestamp", "metadata.generation", "metadata.uid", "spec", "status"
    ).fields,
    most_bytes=2 * MOST_BYTES,  # with the messages of the status
)
EVERY_RULE: Final = "*"
T = TypeVar("T")
_RuleOrGroup: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        description="The id of a rule, such as pod-resources/whole-number, or the name of a group of rules.",
    ),
]
_Kind: TypeAlias = Annotated[str, Field(min_length=1, max_length=253)]
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=253)]


class PolicyExceptionSpec(ExceptionRecord):
    """Rules that objects of the namespace may break until a day. Kinds, names and labels choose some of the objects."""

    rules: tuple[_RuleOrGroup, ...] = Field(
        min_length=1, max_length=50, description="Ids of rules and names of groups of rules that may be broken."
    )
    kinds: tuple[_Kind, ...] = Field(
        default=(),
        max_length=50,
        description="Kinds of objects, such as PyTorchJob. If several groups have a kind of this name, add the group: "
        "Job.batch or Job.batch.volcano.sh, and Service.core for the core group.",
    )
    names: tuple[_Name, ...] = Field(
        default=(), max_length=50, description="Names of objects; `*` stands for any characters."
    )
    object_selector: LabelSelector | None = Field(default=None, description="Labels of objects.")
    owner: str = Field(min_length=1, max_length=253, description="The owner: a team or an address.")
    reason: str = Field(min_length=1, max_length=1000, description="The reason.")


class PolicyException(Struct, frozen=True):
    """A valid PolicyException.

    `created` is the day in UTC on which an API server stored the object; None for an object of a file.
    """

    namespace: str
    name: str
    created: dt.date | None
    spec: PolicyExceptionSpec

    @property
    def place(self) -> str:
        """Return the name for messages, such as `PolicyException research/old-plugin`."""
        return f"{POLICY_EXCEPTION} {self.namespace}/{self.name}"

    @property
    def description(self) -> str:
        """Return a text such as `excepted until 2027-01-31 by PolicyException research/old-plugin of ml: REASON`."""
        owner, reason = (" ".join(text.split()) for text in (self.spec.owner, self.spec.reason))
        return f"excepted until {self.spec.expires} by {self.place} of {owner}: {reason}"

    def is_about(self, kind: tuple[str, str], name: str, labels: Labels) -> bool:
        """Return whether the exception is about an object of its namespace."""
        spec = self.spec
        return (
            (not spec.kinds or any(names_kind(text, kind) for text in spec.kinds))
            and (not spec.names or any(_matches(pattern, name) for pattern in spec.names))
            and (spec.object_selector is None or compile_selector(spec.object_selector).matches(labels))
        )

    def names_rule(self, rule: str) -> bool:
        """Return whether the exception names a rule or its group."""
        return rule in self.spec.rules or rule.partition("/")[0] in self.spec.rules


class Effect(Struct, frozen=True):
    """The reason and the message of a condition about the effect of an exception."""

    reason: str
    message: str

    @property
    def holds(self) -> bool:
        """Return whether objects may break the rules of the exception."""
        return self.reason == "InEffect"


def is_description_of_object(description: str) -> bool:
    """Return whether a text is the description of a PolicyException."""
    return description.partition(" by ")[2].startswith(f"{POLICY_EXCEPTION} ")


def is_policy_exception(value: JSON) -> bool:
    """Return whether an object is a PolicyException, in any version."""
    version = value.get("apiVersion") if isinstance(value, dict) else None
    is_of_group = isinstance(version, str) and version.partition("/")[0] == GROUP
    return is_of_group and value.get("kind") == POLICY_EXCEPTION


def parse_policy_exception(value: JSON) -> PolicyException:
    """Read one object.

    Raises:
        ShapeError: the object is too large, or has mistakes. All mistakes are reported.
    """
    if value.get("apiVersion") != API_VERSION:
        raise ShapeError(((("apiVersion",), f"unknown version `{value.get('apiVersion')}`; expected {API_VERSION}"),))
    if OMITTED in value:
        raise ShapeError((((), _too_large(int(value[OMITTED]))),))
    try:
        text = json.dumps(without_nulls(value.get("spec") or {}), default=refuse_unread_part)
        if len(text) > MOST_BYTES:
            raise ShapeError(((("spec",), _too_large(len(text))),))
        spec = PolicyExceptionSpec.model_validate_json(text)
    except UnreadPartError as error:
        raise ShapeError(((("spec",), str(error)),)) from None
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        raise ShapeError(
            tuple((("spec", *each["loc"]), describe_mistake_of_model(PolicyExceptionSpec, each)) for each in mistakes)
        ) from None
    if wrong := tuple((each.path, each.body) for each in selector_errors(spec.object_selector, _SELECTOR)):
        raise ShapeError(wrong)
    namespace, name = namespace_and_name(value)
    return PolicyException(namespace or "default", name, _day_of_creation(value), spec)


_SELECTOR: Final[FieldPath] = ("spec", "objectSelector")


def _too_large(size: int) -> str:
    return f"the object has {size} bytes, and at most {MOST_BYTES} are allowed: split the object"


def _day_of_creation(value: JSON) -> dt.date | None:
    created = get(value, ("metadata", "creationTimestamp"), None)
    try:
        return dt.date.fromisoformat(str(created)[:10]) if created else None
    except ValueError:  # an object of a file may have any value
        return None


def oldest_of_namespace(objects: Iterable[JSON]) -> list[JSON]:
    """Return the objects of a namespace that have an effect, the oldest first. All replicas have the same order."""
    return sorted(objects, key=_age_order)[:MOST_IN_NAMESPACE]


def one_of_each_namespace_in_turn(items: Iterable[T], namespace: Callable[[T], str]) -> list[T]:
    """Return the first item of each namespace, then the second item of each namespace, and so on. If only the first
    items are used, a namespace with very many items does not displace other namespaces.
    """
    turn_of_namespace = Counter[str]()

    def turn(item: T) -> int:
        turn_of_namespace[namespace(item)] += 1
        return turn_of_namespace[namespace(item)]

    return sorted(items, key=turn)


def _age_order(value: JSON) -> tuple[str, str]:
    return str(get(value, ("metadata", "creationTimestamp"), "")), namespace_and_name(value)[1]


def effect_of_exception(exception: PolicyException, configuration: FileConfiguration, day: dt.date) -> Effect:
    """Return whether an exception has an effect on a day under a configuration, with the reason."""
    spec = exception.spec
    if spec.days_left(day) < 0:
        return Effect("Expired", f"it expired on {spec.expires}: delete it, or write a later day")
    limits = {rule: _most_days(rule, exception.namespace, configuration) for rule in spec.rules}
    if refused := [rule for rule, days in limits.items() if days == 0]:
        rules_in_namespace = f"{named(refused, 'rule')} in namespace {exception.namespace}"
        fix = "ask the operator of claimgate to allow it with `policyExceptions`, or remove it"
        return Effect("NotAllowed", f"claimgate.yaml allows no PolicyException for {rules_in_namespace}: {fix}")
    rule = min(limits, key=limits.__getitem__)
    last = (exception.created or day) + dt.timedelta(days=limits[rule])
    if spec.expires > last:
        limit = f"claimgate.yaml allows {counted(limits[rule], 'day')} from its creation for {rule}"
        return Effect("TooLong", f"it ends on {spec.expires}, and {limit}: write {last} or an earlier day")
    sentence = f"objects of namespace {exception.namespace} may break {', '.join(spec.rules)} until {spec.expires}"
    return Effect("InEffect", sentence)


def _most_days(rule: str, namespace: str, configuration: FileConfiguration) -> int:
    """Return the maximum number of days of an exception for a rule or group in a namespace; 0 if no exception is
    allowed.
    """
    return max(
        (
            each.max_days
            for each in configuration.policy_exceptions
            if not {rule, rule.partition("/")[0], EVERY_RULE}.isdisjoint(each.rules)
            and (not each.namespaces or any(fnmatchcase(namespace, pattern) for pattern in each.namespaces))
        ),
        default=0,
    )


def names_kind(text: str, kind: tuple[str, str]) -> bool:
    """Return whether a text such as `Job.batch`, or `Job` for any group, names this group and kind."""
    return text == kind[1] or ("." in text and parse_group_kind(text) == kind)


def _matches(pattern: str, name: str) -> bool:
    """Match a user's pattern, in which `*` means any characters. fnmatch is not used, because Python would cache 32,768
    regular expressions.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    if not name.startswith(first):
        return False
    *middle, last = rest
    at = len(first)
    for part in middle:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return name.endswith(last) and len(name) - len(last) >= at


def sentences_about_mistakes(problems: Iterable[tuple[FieldPath, str]]) -> list[str]:
    """Return mistakes as sentences with their paths."""
    return [f"{path_as_text(path)}: {text}" if path else text for path, text in problems]


def iterate_readable(objects: Iterable[JSON]) -> Iterator[PolicyException]:
    """Yield the valid PolicyExceptions among stored objects. Invalid PolicyExceptions have no effect."""
    for each in objects:
        try:
            yield parse_policy_exception(each)
        except ShapeError:
            continue
