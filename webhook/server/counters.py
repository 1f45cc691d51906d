"""The counters of this process, which the event loop raises while it answers reviews.

The event loop is the only writer, so there are no locks. To count a decision costs a microsecond. With the client
library's counters, it would cost several microseconds. metrics.py shows the counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

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


def _empty_check_distributions() -> defaultdict[Labels, Distribution]:
    return defaultdict(lambda: Distribution(CHECK_BUCKETS))


def _empty_review_distributions() -> defaultdict[Labels, Distribution]:
    return defaultdict(lambda: Distribution(REVIEW_BUCKETS))


@dataclass(slots=True)
class Counters:
    """All counters of a process since its start. metrics.py has the labels of each counter.

    Attributes:
        rules: by rule, phase and action: the real action, the withheld action, or excepted. The policies and the
            catalogue bound the number of rules.
        exception_days: days until exceptions and exemptions of the configuration end.
        policy_faults: our own bugs in a policy, which count as evaluation errors.
        uncaught: our own bugs that become HTTP 500.
        lanes: `inline_overrun`: moved from the loop to a worker; `unread`: incomplete at the deadline, or too large;
            `unreadable`: only the head is readable; `abandoned`: the client closed the connection before the answer.
        events: `repeated`: the same event was written before; `dropped`: too many events wait.
        workers: `killed`: at the deadline; `not_started`: reviews without a free worker in time.
    """

    requests: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    durations: defaultdict[Labels, Distribution] = field(default_factory=_empty_review_distributions)
    validating: defaultdict[Labels, Distribution] = field(default_factory=_empty_check_distributions)
    mutating: defaultdict[Labels, Distribution] = field(default_factory=_empty_check_distributions)
    rules: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    reloads: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    last_reload: dict[Labels, int] = field(default_factory=dict)
    exception_days: dict[Labels, int] = field(default_factory=dict)
    policy_faults: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    uncaught: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    lanes: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    questions: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    events: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    spans: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    workers: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    param_mistakes: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    background: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    connections: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    connections_aborted: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))
    handshakes_failed: defaultdict[Labels, int] = field(default_factory=lambda: defaultdict(int))

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
