"""Mistakes in params of a live cluster: told to people, while reviews are answered all the same.

A param of a file with such a mistake is refused when it is loaded. Nobody can refuse that of a cluster, where somebody
has changed it already: a rule that does not exist is logged once for each change, counted, and told in /readyz?verbose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from webhook.cluster import Cluster
from webhook.errors import LookupFailed
from webhook.logs import Log
from webhook.paths import render
from webhook.policy.param_rules import ParamRules
from webhook.policy.policy_set import PolicySet
from webhook.server.counters import Counters

PERIOD_S: Final = 5.0
"""How often a change of the view is looked for. A log line about a ConfigMap may be some seconds late."""
MOST_SHOWN: Final = 20
"""Mistakes that are told in /readyz?verbose; a ConfigMap may have a megabyte of them."""


class LiveParams:
    """The params that bindings name, as the view of the cluster has them."""

    def __init__(
        self, policies: Callable[[], PolicySet], cluster: Callable[[], Cluster], counters: Counters, log: Log
    ) -> None:
        self._policies = policies
        self._cluster = cluster
        self._counters = counters
        self._log = log
        self._mistakes: dict[str, None] = {}
        self._seen: object = None

    def remark(self) -> str:
        """The mistakes that were found last, for /readyz?verbose and the log."""
        shown = [*self._mistakes][:MOST_SHOWN]
        left = len(self._mistakes) - len(shown)
        return "; ".join([*shown, *[f"and {left} more"] * bool(left)])

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            self.look()
            await asyncio.sleep(PERIOD_S)

    def look(self) -> None:
        """Find the mistakes, if policies or view have changed; new ones are counted, and logged in one line."""
        policies, cluster = self._policies(), self._cluster()
        rules = ParamRules(policies.validating, policies.registry)
        seen = policies, [cluster.revision(kind) for kind in dict.fromkeys(kind for kind, *_ in rules.static_params())]
        if seen == self._seen:
            return
        self._seen = seen
        before, self._mistakes = self._mistakes, dict.fromkeys(_mistakes(rules, cluster))
        added = len(self._mistakes.keys() - before.keys())
        if added:
            self._counters.param_mistakes[()] += added
            self._log.warning("params name what does not exist", mistakes=self.remark())


def _mistakes(rules: ParamRules, cluster: Cluster) -> Iterator[str]:
    for kind, namespace, name in rules.static_params():
        try:
            param = cluster.get(kind, namespace, name)
        except LookupFailed:
            continue  # policies that need it say so
        for path, text in rules.mistakes_of_param(param):
            yield f"{kind.kind} {namespace}/{name}: {render(path)}: {text}"
