"""The parameters that bindings name with their namespace: the same for every request until the view of them changes.

Nearly all bindings do so, and nearly all reviews ask ten of them. Knows views and their revisions, no requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.attributes import JSON
from webhook.cluster import Cluster
from webhook.policy.compiled import ParamSource, Policy

MOST_READ: Final = 1000


@dataclass(slots=True)
class Known:
    """What is known as long as a view does not change.

    `params` are the parameters by paramKind and source (`id` of both: policies outlive this), `read` is what somebody
    made of a parameter, with the parameter, by its `id`: of the first MOST_READ. `held` is whether
    conditions hold that read nothing else, `prepared` what stands for candidates (evaluation/prepared.py); each with
    what it is about, by the `id` of that.
    """

    revision: object = None
    params: dict[tuple[int, int], Sequence[JSON]] = field(default_factory=dict)
    read: dict[int, tuple[JSON, Any]] = field(default_factory=dict)
    held: dict[tuple[int, tuple[str, ...]], tuple[object, bool]] = field(default_factory=dict)
    prepared: dict[int, Any] = field(default_factory=dict)


class StandingParams:
    """Parameters that need no request to be found, for one set of policies."""

    __slots__ = ("_kinds", "_known")

    def __init__(self, policies: Iterable[Policy]) -> None:
        kinds = {policy.param_kind for policy in policies if any(map(is_standing, _sources(policy)))}
        self._kinds = tuple(kind for kind in kinds if kind is not None)
        self._known = Known()

    def known(self, cluster: Cluster) -> Known:
        """What is known of a view; nothing yet where it is another one than the last, or has changed."""
        revision = [cluster.revision(kind) for kind in self._kinds]
        if self._known.revision != revision:
            self._known = Known(revision)
        return self._known


def is_standing(source: ParamSource) -> bool:
    """Whether a reference names one object wherever the request comes from."""
    return bool(source.name and source.namespace)


def _sources(policy: Policy) -> Iterable[ParamSource]:
    return (each.param_source for each in policy.bindings if each.param_source is not None)
