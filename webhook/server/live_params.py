"""Reports mistakes in the params of a live cluster, while reviews are answered all the same.

A param of a file with such a mistake is refused when it is loaded. Nobody can refuse that of a cluster, where somebody
has changed it already: a rule that does not exist is logged once for each change, counted, and told in /readyz?verbose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from webhook.apimachinery.paths import path_as_text
from webhook.cluster import Cluster
from webhook.cluster.lookup import namespace_and_name
from webhook.logs.structured import Log
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.server.counters import Counters

PERIOD_S: Final = 5.0
"""Seconds between two looks for changes. A log line about a ConfigMap may be some seconds late."""
MOST: Final = 20
"""How many mistakes are reported; a ConfigMap may hold a megabyte of them, and each suggestion takes milliseconds."""


class LiveParamsChecker:
    """Finds mistakes in the params that bindings name or select, in the current view of the cluster."""

    def __init__(
        self, policies: Callable[[], PolicySet], cluster: Callable[[], Cluster], counters: Counters, log: Log
    ) -> None:
        self._policies = policies
        self._cluster = cluster
        self._counters = counters
        self._log = log
        self._mistakes: Sequence[str] = ()
        self._seen: object = None

    def describe_mistakes(self) -> str:
        """Return the mistakes that were found last as one text, for /readyz?verbose and the log."""
        return "; ".join(self._mistakes)

    async def watch(self) -> None:
        """Look for changes and report new mistakes for ever; the search runs in a thread."""
        while True:
            if self.has_changed():
                self.note(await asyncio.to_thread(self.find_mistakes))
            await asyncio.sleep(PERIOD_S)

    def has_changed(self) -> bool:
        """Return whether policies or params have changed since the last call."""
        policies, cluster = self._policies(), self._cluster()
        kinds = ParamRuleChecker(policies.validating, policies.registry).param_kinds()
        seen = policies, {kind: cluster.revision(kind) for kind in kinds}
        before, self._seen = self._seen, seen
        return seen != before

    def find_mistakes(self) -> Sequence[str]:
        """Return the mistakes in the current params."""
        policies = self._policies()
        return tuple(
            islice(
                _distinct_mistakes_in_params(ParamRuleChecker(policies.validating, policies.registry), self._cluster()),
                MOST,
            )
        )

    def note(self, mistakes: Sequence[str]) -> None:
        """Store the mistakes, count those that are new, and log all of them when there are new ones."""
        added = set(mistakes).difference(self._mistakes)
        self._mistakes = mistakes
        if added:
            self._counters.param_mistakes[()] += len(added)
            self._log.warning("params name what does not exist", mistakes=self.describe_mistakes())


def _distinct_mistakes_in_params(rules: ParamRuleChecker, cluster: Cluster) -> Iterator[str]:
    """Yield each mistake of each param once, even when several policies use the param."""
    seen: set[int] = set()
    for kind, param in rules.params_in_cluster(cluster):
        if id(param) not in seen:
            seen.add(id(param))
            place = "/".join(filter(None, namespace_and_name(param)))
            for path, text in rules.mistakes_of_param(param):
                yield f"{kind.kind} {place}: {path_as_text(path)}: {text}"
