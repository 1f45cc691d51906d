"""The counters of this process, which the event loop raises while it answers reviews.

The event loop is the only writer, so there are no locks. To count a decision costs a microsecond. With the client
library's counters, it would cost several microseconds. metrics.py shows the counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.rules.decisions import Decision, ValidationAction, Verdict

CHECK_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
"""kube-apiserver v1.36 plugin/policy/validating/metrics/metrics.go; the cheapest expression takes 180 ns."""
REVIEW_BUCKETS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25)
"""kube-apiserver v1.36 admission/metrics/metrics.go, webhook_admission_duration_seconds, and three finer buckets: a
call of 5 ms for the API server, with the network, takes 0.1 ms here."""

TYPES: Final = {Phase.MUTATE: "admit", Phase.VALIDATE: "validating"}
"""The label `type` of each phase, as in the API server's metrics."""

EXCEPTED: Final = "excepted"
"""The label `enforcement_action` of a rule that an object may break because of an exception."""

Labels: TypeAlias = tuple[str, ...]


class Distribution:
    """A histogram: the observations of each bucket, and their sum; the last bucket has no upper bound."""

    __slots__ = ("buckets", "counts", "total")

    def __init__(self, buckets: tuple[float, ...]) -> None:
        self.buckets = buckets
        self.counts = [0] * (len(buckets) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.buckets, value)] += 1
        self.total += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the observations of another process, in the same buckets."""
        self.counts = [own_count + other_count for own_count, other_count in zip(self.counts, counts, strict=True)]
        self.total += total


class Metric(NamedTuple):
    """How metrics.py shows the counts of a field.

    `name` has neither the prefix `claimgate_` nor the ending `_total` or `_duration_seconds`. If a histogram has the
    help text `counted`, a counter with this help shows the number of observations.
    """

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    documentation: str
    labels: Sequence[str]
    counted: str = ""


METRIC: Final = "metric"
"""The key of the Metric in the metadata of a field."""


def _counter(name: str, documentation: str, labels: str = "") -> Any:
    # spaces separate the names of the labels
    return field(default_factory=Counter, metadata={METRIC: Metric("counter", name, documentation, labels.split())})


def _gauge(name: str, documentation: str, labels: str) -> Any:
    return field(default_factory=Counter, metadata={METRIC: Metric("gauge", name, documentation, labels.split())})


def _histogram(buckets: tuple[float, ...], name: str, documentation: str, labels: str, *, counted: str = "") -> Any:
    metric = Metric("histogram", name, documentation, labels.split(), counted)
    return field(default_factory=lambda: defaultdict(lambda: Distribution(buckets)), metadata={METRIC: metric})


_OF_CHECK: Final = "policy policy_binding error_type"


@dataclass(slots=True)
class Counters:
    """All counters of a process since its start, with the name, the help and the labels of each metric.

    Attributes:
        rules: reviews with a broken rule, by the action that was taken or withheld, or `excepted`. The policies and the
            catalogue bound the number of rules.
        policy_faults: our own bugs in a policy, which count as evaluation errors.
        uncaught: our own bugs that become HTTP 500.
        lanes: `inline_overrun`: moved from the loop to a worker; `unread`: incomplete at the deadline, or too large;
            `unreadable`: only the head is readable; `abandoned`: the client closed the connection before the answer.
        events: `repeated`: the same event was written before; `dropped`: too many events wait.
        workers: `killed`: at the deadline; `not_started`: reviews without a free worker in time.
    """

    requests: Counter[Labels] = _counter(
        "admission_webhook_request", "Calls answered, by HTTP code.", "type operation code rejected"
    )
    durations: defaultdict[Labels, Distribution] = _histogram(
        REVIEW_BUCKETS,
        "admission_webhook_admission",
        "Seconds from the whole body to the whole answer.",
        "type operation rejected",
    )
    validating: defaultdict[Labels, Distribution] = _histogram(
        CHECK_BUCKETS,
        "validating_admission_policy_check",
        "Seconds of one check of a validating policy.",
        f"{_OF_CHECK} enforcement_action",
        counted="Checks by validating admission policies.",
    )
    mutating: defaultdict[Labels, Distribution] = _histogram(
        CHECK_BUCKETS,
        "mutating_admission_policy_check",
        "Seconds of one check of a mutating policy.",
        _OF_CHECK,
        counted="Checks by mutating admission policies.",
    )
    rules: Counter[Labels] = _counter(
        "broken_rules", "Reviews in which a rule was broken.", "rule phase enforcement_action"
    )
    reloads: Counter[Labels] = _counter("reloads", "Reloads of changed files, by outcome.", "what outcome")
    events: Counter[Labels] = _counter("events", "Events about warnings, by outcome.", "outcome")
    spans: Counter[Labels] = _counter("spans", "Spans of reviews, by outcome.", "outcome")
    lanes: Counter[Labels] = _counter("reviews_by_lane", "Reviews, by where they were evaluated.", "lane")
    questions: Counter[Labels] = _counter("access_reviews", "Access reviews of policies, by outcome.", "outcome")
    workers: Counter[Labels] = _counter("workers_ended", "Worker processes, by how they ended.", "outcome")
    policy_faults: Counter[Labels] = _counter("policy_faults", "Faults of claimgate in a policy.", "policy checks type")
    uncaught: Counter[Labels] = _counter("uncaught_faults", "Uncaught faults of claimgate.", "type")
    param_mistakes: Counter[Labels] = _counter("param_mistakes", "Mistakes found in live params.")
    background: Counter[Labels] = _counter("background_failures", "Failures of background tasks.", "task")
    connections_aborted: Counter[Labels] = _counter("connections_aborted", "Connections ended early.", "reason")
    handshakes_failed: Counter[Labels] = _counter("tls_handshakes_failed", "TLS handshakes that failed.", "reason")
    connections: Counter[Labels] = _gauge("connections", "Open connections.", "port")
    last_reload: dict[Labels, int] = _gauge(
        "last_reload_successful", "1 if the last reload succeeded, 0 if it failed.", "what"
    )
    exception_days: dict[Labels, int] = _gauge(
        "exception_days_left",
        "Days until exceptions and exemptions end; less than 0 after their last day.",
        "what owner expires",
    )

    def reviewed(self, attributes: Attributes, phase: Phase, verdict: Verdict, elapsed_s: float) -> None:
        """Count one answered review and the decision of each policy."""
        type_, operation = TYPES[phase], attributes.operation
        rejected = "false" if verdict.allowed else "true"
        self.requests[type_, operation, "200", rejected] += 1
        self.durations[type_, operation, rejected].observe(elapsed_s)
        for decision in verdict.decisions:
            labels = decision.policy, decision.binding, _error_type_label(decision)
            if decision.kind == "mutating":
                self.mutating[labels].observe(decision.elapsed_s)
            else:
                self.validating[*labels, _enforcement_label(decision)].observe(decision.elapsed_s)
        broken = {
            (rule, phase.value, label)
            for decision in verdict.decisions
            if (decision.evaluation != "admit" or decision.withheld)  # read first: most decisions end here
            and (decision.action == "deny" or decision.withheld or decision.is_excepted)
            and not decision.is_advice
            for label in (EXCEPTED if decision.is_excepted else _enforcement_label(decision),)
            for rule in decision.broken_rules
        }
        for labels in broken:
            self.rules[labels] += 1

    def refused(self, phase: Phase, code: int) -> None:
        """Count one call that was answered with an HTTP error; its operation is not known."""
        self.requests[TYPES[phase], "", str(code), "true"] += 1

    def dump(self) -> JSON:
        """Return the counters as JSON, for a child process to send to its parent."""
        plain = {name: [[*labels, count] for labels, count in getattr(self, name).items()] for name in _PLAIN_COUNTERS}
        spread = {
            name: [
                [*labels, distribution.counts, distribution.total]
                for labels, distribution in getattr(self, name).items()
            ]
            for name in _DISTRIBUTIONS
        }
        return {**plain, **spread}

    def add(self, dumped: JSON) -> None:
        """Add the counts of a worker process."""
        for name in _PLAIN_COUNTERS:
            for *labels, count in dumped[name]:
                getattr(self, name)[tuple(labels)] += count
        for name in _DISTRIBUTIONS:
            for *labels, counts, total in dumped[name]:
                getattr(self, name)[tuple(labels)].add(counts, total)


_PLAIN_COUNTERS: Final = ("requests", "rules")
_DISTRIBUTIONS: Final = ("durations", "validating", "mutating")


def _error_type_label(decision: Decision) -> str:
    # values of the API server's metrics, and `unknown`: an object was not found
    if decision.evaluation == "error":
        return "invalid_error"
    return "unknown" if decision.evaluation == "unknown" else "no_error"


def _enforcement_label(decision: Decision) -> str:
    # the strictest action of the binding, as in the API server's metrics
    # if the installation limits actions: `would_` and the unlimited action
    if decision.withheld:
        return f"would_{decision.withheld}"
    if decision.action == "admit":
        return "allow"
    if decision.kind == "mutating":
        return "deny"
    if ValidationAction.DENY in decision.actions or not decision.actions:
        return "deny"
    return "warn" if ValidationAction.WARN in decision.actions else "audit"
