"""Budgets that forbid every eviction, and autoscalers that ask for more pods than nodes have devices for.

Source: k8s.io/kubernetes v1.36 pkg/controller/disruption and pkg/controller/podautoscaler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.nodes.node_offers import known_offers, needs_of_pod
from webhook.facts.pods.node_selection import is_selected
from webhook.facts.pods.node_sources import first_node_without_amounts, source_of_new_nodes
from webhook.facts.subject import Subject
from webhook.facts.updates.groups import UPDATE
from webhook.facts.updates.spare_devices import pods_on_node
from webhook.rules.problem import Problem
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.autoscaling import HorizontalPodAutoscaler
from webhook.typed.cluster_objects import Deployment, Node, PodDisruptionBudget

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


def check_budget(subject: Subject) -> Iterator[Problem]:
    """Yield a budget that allows no disruption of a Deployment with devices."""
    budget, view = subject.typed(PodDisruptionBudget), subject.cluster_view()
    spec = budget.spec
    if not spec.selector:
        return
    for each in view.copy_without_missing_objects().list_typed(Deployment, subject.namespace):
        template = each.spec.template
        replicas = 1 if each.spec.replicas is None else each.spec.replicas
        if not needs_of_pod(template.spec, view).devices or not is_selected(template.metadata.labels, spec.selector):
            continue
        least = spec.min_available
        is_closed = (
            spec.max_unavailable in (0, "0%") or least == "100%" or (isinstance(least, int) and least >= replicas)
        )
        if is_closed and replicas > 0:
            message = (
                f"this PodDisruptionBudget allows no eviction of Deployment {each.name} ({counted(replicas, 'pod')})"
            )
            fix = "allow one unavailable pod, or run more replicas"
            yield BUDGET.problem(spec.at, message, fix)


def check_autoscaler(subject: Subject) -> Iterator[Problem]:
    """Yield a maximum of replicas above what the nodes of a whole cluster have devices for."""
    spec, view = subject.typed(HorizontalPodAutoscaler).spec, subject.cluster_view()
    nodes = view.list_visible_json(Node.gvk) if view.is_whole(Node.gvk) else ()
    if spec.scale_target_ref.kind != "Deployment" or not nodes or source_of_new_nodes(view):
        return
    template = view.find(Deployment, spec.scale_target_ref.name).spec.template
    needs, most = needs_of_pod(template.spec, view), spec.max_replicas or 0
    if not needs.devices or first_node_without_amounts(IdentityKey(nodes)):
        return
    capacity = sum(pods_on_node(needs, offer) for offer in known_offers(view) if needs.fits(offer))
    if 0 < capacity < most:
        message = f"is {most}, but the nodes have devices for {capacity} such pods"
        yield SCALING.problem(spec.path("maxReplicas"), message, f"set maxReplicas {capacity}, or add nodes")
