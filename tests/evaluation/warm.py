"""The same policies with and without what they keep between requests, and a view of a cluster that changes by kinds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import Phase as Trial
from hypothesis import settings

from webhook.admission.enforce import enforce
from webhook.admission.review import review
from webhook.attributes import JSON, Attributes, GroupVersionKind, Phase
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.decisions import Decision, Verdict
from webhook.errors import LookupFailed
from webhook.evaluation.mutating import mutate
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validate
from webhook.policy.policy_set import PolicySet
from webhook.policy.standing_params import StandingParams


@dataclass(frozen=True, eq=False)
class ByKind:
    """A view whose kinds change one by one: of each what files hold, or None where nobody can say."""

    parts: Mapping[str, FilesCluster | None]
    rest: FilesCluster

    def _of(self, gvk: GroupVersionKind) -> FilesCluster:
        part = self.parts.get(gvk.kind, self.rest)
        if part is None:
            raise LookupFailed(f"{gvk.kind}: not synced yet")
        return part

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        return self._of(gvk).get(gvk, namespace, name)

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        return self._of(gvk).list(gvk, namespace, labels)

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        return self._of(gvk).is_namespaced(gvk)

    def synced(self, gvk: GroupVersionKind) -> bool:
        return self.parts.get(gvk.kind, self.rest) is not None

    def revision(self, gvk: GroupVersionKind) -> object:
        return self.parts.get(gvk.kind, self.rest)


@dataclass(frozen=True, eq=False)
class Step:
    """One request, and the cluster by then."""

    attributes: Attributes
    view: Cluster


def answers(policies: PolicySet, step: Step) -> list[Verdict]:
    """What is answered in both phases."""
    return [_untimed(review(step.attributes, policies, step.view, phase=phase)) for phase in Phase]


def first_answers(policies: PolicySet, step: Step) -> list[Verdict]:
    """The same by policies that were never asked before."""
    return answers(forgetful(policies), step)


def full_answers(policies: PolicySet, step: Step) -> list[tuple[Sequence[Decision], JSON]]:
    """Decisions, and the object, when no policy is spared; nothing where a fault of ours was met on the way."""
    fresh, attributes, made = forgetful(policies), step.attributes, []
    for phase in Phase:
        context = request_context(fresh, attributes, step.view)
        context.faults = []  # as for a review in which one of our own faults was met
        decisions = _without_times(validate(attributes, fresh, step.view, phase, context=context))
        changed = attributes.object
        if phase is Phase.MUTATE and enforce(decisions, attributes).allowed:
            changed, more = mutate(attributes, fresh, step.view, context=context)
            decisions += _without_times(more)
        if context.faults:  # an object that no API server has decoded, whatever the request says: it is decoded then
            return []
        made.append((decisions, changed))
    return made


def forgetful(policies: PolicySet) -> PolicySet:
    """The same policies, without anything that is kept of requests, wherever it is kept."""
    for policy in policies.policies:
        gate = policy.gate()
        for memo in (gate.memo, policy.body().memo, gate.of_created and gate.of_created.memo):
            if memo is not None:
                memo._kept.clear()
    for cache in _caches():
        cache.cache_clear()
    policies._known.clear()
    policies._certain.clear()
    object.__setattr__(policies, "standing_params", StandingParams(policies.policies))
    return policies


_CACHED: dict[int, list[Any]] = {}


def _caches() -> Iterable[Any]:
    """The bounded caches of the functions of all modules."""
    if len(sys.modules) not in _CACHED:
        ours = [module for name, module in sys.modules.items() if name.startswith("webhook.")]
        found = {id(each): each for module in ours for each in vars(module).values() if hasattr(each, "cache_info")}
        _CACHED[len(sys.modules)] = [each for each in found.values() if each.cache_parameters()["maxsize"]]
    return _CACHED[len(sys.modules)]


def _untimed(verdict: Verdict) -> Verdict:
    return replace(verdict, decisions=_without_times(verdict.decisions))


def _without_times(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    return tuple(replace(each, elapsed_s=0.0) for each in decisions)


def examples(few: int) -> settings:
    """How many are tried: few, or a part of what the profile says; of their seeds there is nothing to shrink."""
    many = settings().max_examples // 5
    return settings(max_examples=many if many > 100 else few, phases=set(Trial) - {Trial.shrink, Trial.explain})


def assert_same(warm: PolicySet, cold: PolicySet, steps: Sequence[Step]) -> None:
    """Compare the answers to some requests, one after the other, with those of policies that keep nothing."""
    told = [answers(warm, step) for step in steps]
    for step, told_warm in zip(steps, told, strict=True):
        assert told_warm == first_answers(cold, step)
        asked_all = full_answers(cold, step)
        for verdict, (decisions, changed) in zip(told_warm, asked_all, strict=bool(asked_all)):
            assert verdict.decisions == decisions
            assert verdict.patch == () or verdict.patched_object == changed
            assert verdict.patch or not verdict.allowed or changed == step.attributes.object
