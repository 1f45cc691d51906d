"""What a server reports about exceptions: the status and the mistakes of PolicyExceptions, and the ends of exceptions.

The status says whether a PolicyException has an effect, because the owner of a namespace sees neither the log nor
`claimgate.yaml`. Reviews look up PolicyExceptions in the view of the cluster (admission/exceptions.py).

The server announces the end of each PolicyException, and of each exception and exemption in the configuration. It
writes one log line a day, and a gauge of the remaining days. An exception in an annotation is not announced, because
the server sees the annotation only in a review. PolicyExceptions have a separate bound, because users of namespaces
write them.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from time import thread_time
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON, Attributes, Operation
from webhook.cluster import Cluster
from webhook.errors import LookupFailed
from webhook.live_policies.conditions import create_condition
from webhook.live_policies.objects import StoredPolicy
from webhook.live_policies.status_writer import ObjectApplier, StatusWriter
from webhook.logs.structured import Log
from webhook.manifests.claimgate_kinds import GROUP, POLICY_EXCEPTION
from webhook.manifests.configuration import ConfigurationFile, TimeLimit
from webhook.manifests.leave_alone import NOTICE_DAYS, current_day
from webhook.manifests.models import ShapeError
from webhook.manifests.policy_exceptions import (
    MOST_IN_NAMESPACE,
    POLICY_EXCEPTIONS,
    PolicyException,
    effect_of_exception,
    is_policy_exception,
    iterate_readable,
    oldest_of_namespace,
    one_of_each_namespace_in_turn,
    parse_policy_exception,
    sentences_about_mistakes,
)
from webhook.policy.configured_rules import KnownNames, mistakes_of_policy_exception
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import INVALID, Decision, ValidationAction

MANAGER: Final = "claimgate"
"""The field manager of the conditions that a server writes."""
LOOK_S: Final = 1.0
"""Seconds between two comparisons of the stored status with the intended status."""
_MOST_SHARE: Final = 0.1
"""The largest share of a processor for these comparisons. Users choose how many objects and changes there are."""
MOST_STATUSES: Final = 1000
"""The bound on objects with a status. Namespaces take turns, because users may store any number of objects."""
_TOO_MANY: Final = (
    f"only the {MOST_IN_NAMESPACE} oldest PolicyExceptions of a namespace have an effect: delete older ones"
)
_Conditions: TypeAlias = tuple[dict[str, Any], ...]
_Status: TypeAlias = tuple[StoredPolicy, _Conditions]


class StoredExceptions:
    """Writes the status of at most MOST_STATUSES PolicyExceptions of a cluster."""

    def __init__(
        self, policies: Callable[[], PolicySet], cluster: Callable[[], Cluster], connection: ObjectApplier
    ) -> None:
        self._policies = policies
        self._cluster = cluster
        self._writer = StatusWriter(connection, MANAGER)
        self._seen: tuple[object, object, object] = (None, None, None)
        self._statuses: Sequence[_Status] = ()
        self._conditions: dict[tuple[str, int, bool], _Conditions] = {}
        self._look_s = 0.0

    async def write_status(self) -> None:
        """Write the status of PolicyExceptions for ever, in a thread."""
        while True:
            await asyncio.sleep(self.pause_s)
            await asyncio.to_thread(self.write_missing_conditions, current_day())

    @property
    def pause_s(self) -> float:
        return max(LOOK_S, self._look_s / _MOST_SHARE)

    def write_missing_conditions(self, day: dt.date) -> None:
        """Write the conditions that the stored objects lack. Write nothing while the objects are not known."""
        started_at = thread_time()
        try:
            self._compute_statuses(day)
        except LookupFailed:
            return
        finally:
            self._look_s = thread_time() - started_at
        self._writer.write((stored, conditions, None) for stored, conditions in self._statuses)

    def _compute_statuses(self, day: dt.date) -> None:
        policies, cluster = self._policies(), self._cluster()
        seen = policies, cluster.revision(POLICY_EXCEPTIONS), day
        if seen == self._seen:
            return
        exceptions = _list_first_ones(cluster)
        earlier_conditions = self._conditions if self._seen[::2] == (policies, day) else {}
        names, in_time = KnownNames.of(policies), _uids_of_oldest(exceptions)
        self._conditions, statuses = {}, []
        for each in exceptions:  # in this order, so that the writes of all namespaces take turns
            is_beyond = each.uid not in in_time
            state = each.uid, each.generation, is_beyond
            if (conditions := earlier_conditions.get(state)) is None:
                new_conditions = _conditions(each, policies, names, day, is_beyond=is_beyond)
                conditions = tuple({**condition, "observedGeneration": each.generation} for condition in new_conditions)
            self._conditions[state] = conditions
            # without spec, because the objects stay in memory
            without_spec = StoredPolicy({name: part for name, part in each.value.items() if name != "spec"})
            statuses.append((without_spec, conditions))
        self._statuses, self._seen = statuses, seen

    def describe_problems(self) -> str:
        """Return why status cannot be written, or ""."""
        return f"status cannot be written: {self._writer.error}" if self._writer.error else ""


def _list_first_ones(cluster: Cluster) -> list[StoredPolicy]:
    # oldest first in each namespace; raises LookupFailed
    # nsmallest, because users may store any number of objects, and one sort of all would block the event loop
    by_namespace: dict[str, list[StoredPolicy]] = {}
    for each in map(StoredPolicy, cluster.list(POLICY_EXCEPTIONS, None)):
        by_namespace.setdefault(each.namespace, []).append(each)
    ranked = (
        (turn, each)
        for own in by_namespace.values()
        for turn, each in enumerate(nsmallest(MOST_STATUSES, own, key=lambda one: one.age_order))
    )
    first = nsmallest(MOST_STATUSES, ranked, key=lambda rank: (rank[0], rank[1].age_order))
    return [each for _, each in first]


def exceptions_in_effect(policies: PolicySet, cluster: Cluster, day: dt.date, last: dt.date) -> list[PolicyException]:
    """Return the PolicyExceptions with an effect on `day`, and the PolicyExceptions that ended since `last`.

    The list is empty if PolicyExceptions are not known or not allowed.
    """
    if not policies.configuration.policy_exceptions:
        return []
    try:
        stored = _list_first_ones(cluster)
    except LookupFailed:
        return []
    exceptions = iterate_readable(each.value for each in stored)
    return [
        each
        for each in exceptions
        if each.spec.expires >= last
        and effect_of_exception(each, policies.configuration, min(day, each.spec.expires)).holds
    ]


def _uids_of_oldest(exceptions: Iterable[StoredPolicy]) -> set[str]:
    # only the oldest exceptions of a namespace may have an effect
    namespaces: dict[str, list[JSON]] = {}
    for each in exceptions:
        namespaces.setdefault(each.namespace, []).append(each.value)
    return {StoredPolicy(value).uid for values in namespaces.values() for value in oldest_of_namespace(values)}


def _conditions(
    stored: StoredPolicy, policies: PolicySet, names: KnownNames, day: dt.date, *, is_beyond: bool
) -> Iterator[dict[str, Any]]:
    try:
        exception = parse_policy_exception(stored.value)
    except ShapeError as error:
        message = "\n".join(sentences_about_mistakes(error.problems))
        yield create_condition("Valid", holds=False, reason="WrongShape", message=message)
        yield create_condition("InEffect", holds=False, reason="WrongShape", message="see condition Valid")
        return
    if mistakes := sentences_about_mistakes(mistakes_of_policy_exception(exception, names)):
        yield create_condition("Valid", holds=False, reason="UnknownName", message="\n".join(mistakes))
    else:
        yield create_condition("Valid", holds=True, reason="Valid", message="its rules and kinds exist")
    effect = effect_of_exception(exception, policies.configuration, day)
    if effect.holds and is_beyond:
        yield create_condition("InEffect", holds=False, reason="TooMany", message=_TOO_MANY)
    else:
        yield create_condition("InEffect", holds=effect.holds, reason=effect.reason, message=effect.message)


def refusal_of_exception(attributes: Attributes, policies: PolicySet, day: dt.date) -> Decision | None:
    """Return the denial of a PolicyException that has a mistake, or that has expired when it is created.

    Any other PolicyException without an effect gets a warning. None if the spec did not change, or if the exception has
    an effect and no mistake.
    """
    new, old = attributes.object, attributes.old_object
    if not is_policy_exception(new) or attributes.sub_resource:
        return None
    if old is not None and old.get("spec") == new.get("spec"):
        return None
    try:
        exception = parse_policy_exception(new)
    except ShapeError as error:
        return decision_about_stored_object(sentences_about_mistakes(error.problems), ValidationAction.DENY)
    if mistakes := sentences_about_mistakes(mistakes_of_policy_exception(exception, KnownNames.of(policies))):
        return decision_about_stored_object(mistakes, ValidationAction.DENY)
    effect = effect_of_exception(exception, policies.configuration, day)
    if effect.holds:
        return None
    is_useless = effect.reason == "Expired" and attributes.operation is Operation.CREATE
    message = f"{exception.place} has no effect: {effect.message}"
    return decision_about_stored_object([message], ValidationAction.DENY if is_useless else ValidationAction.WARN)


def decision_about_stored_object(lines: Sequence[str], action: ValidationAction) -> Decision:
    """Return the denial of a stored object of claimgate.dev, or the warning about it."""
    return Decision(
        policy=GROUP,
        rule=GROUP,
        binding="",
        evaluation="deny",
        denial=INVALID,
        actions=(action,),
        message="; ".join(lines),
    )


ANNOUNCE_S: Final = 60.0
"""Seconds between two calls of `EndingExceptions.announce`."""
MOST_ANNOUNCED: Final = 100
"""The bound on announced exceptions. The exceptions that end first are announced. PolicyExceptions have the same bound,
and their namespaces take turns.
"""
_MOST_ANNOUNCED_OF_NAMESPACE: Final = 10
"""The most lines a day about PolicyExceptions of one namespace."""
_ENDED: Final = dt.timedelta(days=NOTICE_DAYS)
"""How long a PolicyException is announced after its end."""


End: TypeAlias = tuple[str, ...]
"""What ends (`exception`, `exemption` or `PolicyException`), the owner, and the last day."""


class EndingExceptions:
    """Announces the ends of exceptions and exemptions.

    The configuration is read again once a day and after each change. PolicyExceptions are read at each check.
    """

    def __init__(
        self,
        configuration: Callable[[], ConfigurationFile],
        log: Log,
        stored: Callable[[dt.date, dt.date], Sequence[PolicyException]] = lambda _, __: (),
    ) -> None:
        """`stored` calls `exceptions_in_effect` with its two days."""
        self._configuration = configuration
        self._stored = stored
        self._announced: tuple[dt.date, dict[str, set[str]]] = dt.date.min, {}
        self._days: dict[End, int] = {}
        self._log = log
        self._seen: tuple[dt.date, ConfigurationFile] | None = None

    def announce(self, day: dt.date) -> dict[End, int]:
        """Write a line for each exception and exemption that ends soon or has expired. Return the days until the end of
        each exception and exemption.
        """
        file = self._configuration()
        if self._seen is None or self._seen[0] != day or self._seen[1] is not file:
            self._seen = day, file
            self._days = self._announce_configured(file, day)
        return {**self._days, **self._announce_stored(day)}

    def _announce_configured(self, file: ConfigurationFile, day: dt.date) -> dict[End, int]:
        time_limits = sorted(file.value.time_limits, key=lambda each: each[1].expires)[:MOST_ANNOUNCED]
        for path, each in time_limits:
            if each.days_left(day) <= NOTICE_DAYS:
                self._announce(each.word, str(file.problem(path, "")), each, day)
        return {(each.word, each.owner, each.expires.isoformat()): each.days_left(day) for _, each in time_limits}

    def _announce(self, word: str, place: str, limit: TimeLimit, day: dt.date) -> None:
        left = limit.days_left(day)
        self._log.warning(
            f"{word} {'ends soon' if left >= 0 else 'has expired'}",
            place=place,
            subjects=list(limit.subjects),
            owner=limit.owner,
            expires=limit.expires.isoformat(),
            days_left=left,
        )

    def _announce_stored(self, day: dt.date) -> dict[End, int]:
        ending = sorted(self._stored(day, day - _ENDED), key=lambda each: each.spec.expires)
        exceptions = one_of_each_namespace_in_turn(ending, lambda each: each.namespace)[:MOST_ANNOUNCED]
        if self._announced[0] != day:
            self._announced = day, {}
        for each in exceptions:
            announced = self._announced[1].setdefault(each.namespace, set())
            line = f"{each.name} {each.spec.expires}"
            is_near = each.spec.days_left(day) <= NOTICE_DAYS
            if is_near and len(announced) < _MOST_ANNOUNCED_OF_NAMESPACE and line not in announced:
                announced.add(line)
                self._announce("exception", each.place, each.spec, day)
        return {
            (POLICY_EXCEPTION, each.spec.owner, each.spec.expires.isoformat()): each.spec.days_left(day)
            for each in exceptions
        }
