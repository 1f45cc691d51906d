"""Budgets that forbid every eviction, and autoscalers that ask for more pods than nodes have devices for.

Source: k8s.io/kubernetes v1.36 pkg/controller/disruption and pkg/controller/podautoscaler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.packed import charge_for_objects
from webhook.facts.nodes.node_offers import known_offers, needs_of_pod
from webhook.facts.pods.node_selection import is_selected
from webhook.facts.pods.node_sources import first_node_without_amounts, source_of_new_nodes
from webhook.facts.subject import Subject
from webhook.facts.updates.groups import UPDATE
from webhook.facts.updates.spare_devices import amount_of_replicas
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.autoscaling import HorizontalPodAutoscaler, ScaledObject
from webhook.typed.cluster_objects import Deployment, Node, PodDisruptionBudget, PodDisruptionBudgetSpec
from webhook.typed.view import ReadingContext

BUDGET: Final = UPDATE.rule(
    "update/budget-forbids-evictions",
    title="A PodDisruptionBudget forbids every eviction",
    why="A drain of the node waits for ever, so nodes are not upgraded.",
    source="k8s.io/kubernetes v1.36 pkg/controller/disruption/disruption.go",
    level="advice",
)
SCALING: Final = UPDATE.rule(
    "update/autoscaler-above-nodes",
    title="An autoscaler asks for more pods than the nodes have devices for",
    why="The additional pods stay Pending, and the autoscaler still counts them.",
    source="k8s.io/kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go",
    level="advice",
)
_SCALED: Final = {"Deployment": Deployment.gvk, "StatefulSet": GroupVersionKind("apps", "v1", "StatefulSet")}
"""Kinds that autoscalers scale, as an audit of files keeps them (commands/audit_index.py)."""
SCALED_LOOKUPS: Final = tuple(interest_in_fields(kind, "spec.replicas", "spec.template") for kind in _SCALED.values())
"""Kinds that only audits hold, because there are many such objects and a server never shows advice."""


def check_budget(subject: Subject) -> Iterator[Problem]:
    """Yield a budget that allows no eviction of a Deployment or StatefulSet with devices."""
    budget, view = subject.typed(PodDisruptionBudget), subject.cluster_view()
    spec = budget.spec
    if not spec.selector:
        return
    for kind, each in _scaled_objects(view):
        template = each.spec.template
        replicas = 1 if each.spec.replicas is None else each.spec.replicas
        is_selected_here = is_selected(template.metadata.labels, spec.selector)
        if (
            replicas > 0
            and is_selected_here
            and _is_closed(spec, replicas)
            and needs_of_pod(template.spec, view).devices
        ):
            pods = counted(replicas, "pod")
            message = f"this PodDisruptionBudget allows no eviction of {kind.kind} {each.name} ({pods})"
            fix = "allow one unavailable pod, or run more replicas"
            yield BUDGET.problem(spec.at, message, fix)


def _scaled_objects(view: ClusterView) -> Iterator[tuple[GroupVersionKind, Deployment]]:
    """Yield the Deployments and StatefulSets of the namespace, which have the same fields."""
    for kind in _SCALED.values():
        held = view.copy_without_missing_objects().list_json(kind, view.namespace)
        for obj in charge_for_objects(held, view.deadline):
            yield kind, Deployment.of(obj, (), ReadingContext(view.deadline))


def _is_closed(spec: PodDisruptionBudgetSpec, replicas: int) -> bool:
    """Return whether a budget leaves no pod that may be evicted; both percentages are rounded up."""
    if spec.max_unavailable is not None:
        return amount_of_replicas(spec.max_unavailable, replicas, is_rounded_up=True) == 0
    if spec.min_available is None:
        return False
    least = amount_of_replicas(spec.min_available, replicas, is_rounded_up=True)
    return least is not None and least >= replicas


def check_autoscaler(subject: Subject) -> Iterator[Problem]:
    """Yield a maximum of replicas above what the nodes of a whole cluster have devices for."""
    spec = subject.typed(HorizontalPodAutoscaler).spec
    target = spec.scale_target_ref
    return _check_maximum(subject, target.kind, target.name, spec.max_replicas, spec.path("maxReplicas"))


def check_scaled_object(subject: Subject) -> Iterator[Problem]:
    """Do the same as `check_autoscaler` for an object of KEDA."""
    spec = subject.typed(ScaledObject).spec
    target, at = spec.scale_target_ref, spec.path("maxReplicaCount")
    return _check_maximum(subject, target.kind or "Deployment", target.name, spec.max_replica_count, at)


def _check_maximum(subject: Subject, kind: str, name: str, most: int | None, at: FieldPath) -> Iterator[Problem]:
    view = subject.cluster_view()
    nodes = view.list_visible_json(Node.gvk) if view.is_whole(Node.gvk) else ()
    if kind not in _SCALED or not most or not nodes or source_of_new_nodes(view):
        return
    held = view.get_without_noting(_SCALED[kind], view.namespace, name)
    needs = needs_of_pod(Deployment.of(held, (), ReadingContext(view.deadline)).spec.template.spec, view)
    if not needs.devices or first_node_without_amounts(IdentityKey(nodes)):
        return
    capacity = sum(needs.pods_on(offer) for offer in known_offers(view) if needs.fits(offer))
    if 0 < capacity < most:
        message = f"is {most}, but the nodes have devices for {capacity} such pods"
        yield SCALING.problem(at, message, f"set {at[-1]} {capacity}, or add nodes")
