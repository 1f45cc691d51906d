"""Decides by names and labels which objects a configuration ignores, and which objects may break a rule."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from pydantic import ValidationError

from webhook.apimachinery.attributes import JSON, NAME_LABEL, UserInfo
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, InputError, UnreadPartError
from webhook.manifests.configuration import (
    ExceptionRecord,
    Exemption,
    FileConfiguration,
    IgnoredObjects,
    RuleException,
    TimeLimit,
)
from webhook.manifests.label_selectors import Labels, compile_selector, labels_of
from webhook.manifests.policy_exceptions import Effect, PolicyException, effect_of_exception, names_kind
from webhook.text.caches import json_bytes
from webhook.text.model_errors import describe_model_error
from webhook.text.wording import counted
from webhook.yamltext import yamlfile
from webhook.yamltext.unread import refuse_unread_part

NOTICE_DAYS: Final = 14
"""A note announces the end of an exception from this number of days before the end."""
MOST_GROUPS: Final = 1000
"""The maximum number of groups of a user that are compared with exemptions. API servers stop a matchCondition that
reads more.
"""
ANNOTATION: Final = "claimgate.dev/ignore"
MOST_CHARACTERS: Final = 1_000
"""The maximum number of characters of an annotation with exceptions: enough for a dozen exceptions. The event loop
needs a few milliseconds.
"""
_MOST_BYTES: Final = 128 << 10
"""The maximum number of bytes of the parsed annotation. An alias in YAML can repeat a text 50,000 times."""
_CHARACTER_S: Final = 1e-5


def is_ignored(
    ignore: IgnoredObjects, namespace: str, obj: JSON, namespace_labels: Callable[[], Labels | None]
) -> bool:
    """Return whether no policy is evaluated on an object. The labels of its namespace are looked up only if needed.

    If these labels are unknown (None), only the name of the namespace counts. `NotIn` would treat unknown labels as
    absent.
    """
    if namespace and any(fnmatchcase(namespace, pattern) for pattern in ignore.namespaces):
        return True
    if ignore.object_selector is not None and compile_selector(ignore.object_selector).matches(labels_of(obj)):
        return True
    if ignore.namespace_selector is None or not namespace:
        return False
    selector, labels = compile_selector(ignore.namespace_selector), namespace_labels()
    if labels is None:
        return selector.keys <= {NAME_LABEL} and selector.matches({NAME_LABEL: namespace})
    return selector.matches(labels)


def current_day() -> dt.date:
    """Return today in UTC."""
    return dt.datetime.now(dt.UTC).date()


def describe_end(limit: TimeLimit, day: dt.date) -> str:
    """Return the end of an exception or exemption, its effect, and what to do."""
    left = limit.days_left(day)
    later = f"ask {limit.owner} for a later day"
    if left < 0:
        return f"expired on {limit.expires} and has no effect: remove it, or {later}"
    when = f"ends on {limit.expires}, in {counted(left, 'day')}" if left else f"ends today, on {limit.expires}"
    return f"{when}; then {limit.effect_of_end}: mend the objects, or {later}"


def is_exempt(exemptions: Iterable[Exemption], user: UserInfo, day: dt.date) -> bool:
    """Return whether a user is exempt. As in matchConditions, no group exempts a user with more than MOST_GROUPS
    groups.
    """
    groups = user.groups if len(user.groups) <= MOST_GROUPS else ()
    return any(
        each.days_left(day) >= 0 and (user.username in each.users or not frozenset(groups).isdisjoint(each.groups))
        for each in exemptions
    )


class ObjectExceptions:
    """The rules that an object may break today: by the configuration, its annotation, and PolicyExceptions."""

    def __init__(
        self,
        configuration: FileConfiguration,
        kind: tuple[str, str],
        namespace: str,
        name: str,
        obj: JSON,
        *,
        stored: Iterable[PolicyException] = (),
        deadline: Deadline,
    ) -> None:
        self._configuration = configuration
        self._stored = [each for each in stored if each.is_about(kind, name, labels_of(obj))]
        named = [each for each in configuration.exceptions if _is_about_object(each, kind, namespace, name)]
        own, self.mistake = _exceptions_of_annotation(configuration, namespace, obj, deadline)
        self._valid: Sequence[ExceptionRecord] = [each for each in (*named, *own) if current_day() <= each.expires]

    def exception_for_rule(self, rule: str) -> ExceptionRecord | PolicyException | None:
        named = next((each for each in self._valid if rule in each.rules), None)
        if named is not None:
            return named
        stored = (each for each in self._stored if each.names_rule(rule))
        return next((each for each in stored if self._effect(each).holds), None)

    def sentences_about_no_effect(self, rules: Iterable[str]) -> Iterator[str]:
        """Yield a sentence about each PolicyException that names one of the rules and has no effect."""
        broken = tuple(rules)
        for each in self._stored:
            effect = self._effect(each)
            if not effect.holds and any(map(each.names_rule, broken)):
                yield f"{each.place} has no effect: {effect.message}"

    def _effect(self, stored: PolicyException) -> Effect:
        return effect_of_exception(stored, self._configuration, current_day())

    def __bool__(self) -> bool:
        return bool(self._valid) or bool(self._stored) or bool(self.mistake)


def _is_about_object(exception: RuleException, kind: tuple[str, str], namespace: str, name: str) -> bool:
    return (
        (not exception.kinds or any(names_kind(text, kind) for text in exception.kinds))
        and _matches_any_pattern(exception.namespaces, namespace)
        and _matches_any_pattern(exception.names, name)
    )


def _matches_any_pattern(patterns: Iterable[str], name: str) -> bool:
    all_patterns = tuple(patterns)
    return not all_patterns or any(fnmatchcase(name, pattern) for pattern in all_patterns)


def may_have_comments(configuration: FileConfiguration, namespace: str) -> bool:
    """Return whether comments in files may make exceptions in a namespace."""
    allowed = configuration.ignore_comments
    return bool(allowed) and _matches_any_pattern(allowed, namespace)


def _exceptions_of_annotation(
    configuration: FileConfiguration, namespace: str, obj: JSON, deadline: Deadline
) -> tuple[Sequence[ExceptionRecord], str]:
    """Return the exceptions in an object's annotation, and why the annotation has no effect; "" if it is absent or has
    an effect.
    """
    text = _exception_annotation(obj)
    if not text:
        return (), ""
    if not configuration.ignore_annotations or not _matches_any_pattern(configuration.ignore_annotations, namespace):
        return (), "has no effect because the configuration does not allow it here (ignoreAnnotations)"
    if len(text) > MOST_CHARACTERS:
        reason = f"it has {len(text)} characters, and at most {MOST_CHARACTERS} are read"
        return (), f"has no effect because {reason}: shorten it"
    try:
        deadline.require_time_for_call(len(text) * _CHARACTER_S)
        (document,) = yamlfile.load(text)
        if json_bytes(document.value, _MOST_BYTES) > _MOST_BYTES:
            return (), "has no effect because its aliases repeat too much: write their values instead"
        value = document.value if isinstance(document.value, list) else [document.value]
        return [ExceptionRecord.model_validate_json(json.dumps(each, default=refuse_unread_part)) for each in value], ""
    except BudgetExceeded:
        return (), "has no effect because there was no time to read it"
    except (InputError, ValueError, UnreadPartError) as error:
        expected = "write rules, owner, reason and expires, such as "
        example = "{rules: [pod-resources/whole-number], owner: ml-team, reason: migration, expires: 2027-01-31}"
        return (), f"cannot be read ({_reason_of_error(error)}): {expected}{example}"


def _reason_of_error(error: Exception) -> str:
    if isinstance(error, ValidationError):
        mistake: Mapping[str, JSON] = error.errors()[0]
        return f"{'.'.join(map(str, mistake['loc']))} {describe_model_error(mistake)}".strip()
    return str(error).split("\n", 1)[0]


def _exception_annotation(obj: JSON) -> str:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""
