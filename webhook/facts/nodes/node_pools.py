"""Whether Karpenter may add a node for a pod: its NodePools with their labels, taints, instance types and limits.

A pod that fits no node of today waits for ever only where NodePools are all that adds nodes, and each rules it out.
Unknown properties of a NodePool count as matching. Preferences of pods are relaxed, so they rule nothing out.

Source: kubernetes-sigs/karpenter@226646810 pkg/scheduling/requirements.go Compatible, nodeclaim.go CanAdd,
scheduler.go filterByRemainingResources; aws/karpenter-provider-aws@1d927085d for the labels and types of AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import path_as_text
from webhook.cluster.interest import interest_in_fields
from webhook.errors import LookupFailed
from webhook.facts.gpu.device_pods import SERVING, without_repeated_problems
from webhook.facts.nodes.node_offers import NodeOffer, PodNeeds
from webhook.facts.nodes.pods_and_nodes import PodsAndNodes, pods_and_nodes
from webhook.facts.nodes.types import NODE_POOL, NodeOverlay, NodePool
from webhook.facts.pods.node_selection import first_untolerated, labels_meet_requirement
from webhook.facts.pods.node_sources import other_source_of_nodes
from webhook.facts.resource_units import format_amount_in_kueue_units, parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.collections import Items
from webhook.typed.pods import SelectorRequirement
from webhook.yamltext import yamlfile

LABELS: Final = NODE_POOL.rule(
    "node-pool/labels",
    title="No node and no NodePool has the labels that a pod requires",
    why="Karpenter adds no node for the pod, so the pod stays Pending.",
    function="Compatible",
)
TAINTS: Final = NODE_POOL.rule(
    "node-pool/taints",
    title="A pod does not tolerate the taints of any NodePool",
    why="Karpenter adds no node for the pod, so the pod stays Pending.",
    function="CanAdd",
)
INSTANCE_TYPES: Final = NODE_POOL.rule(
    "node-pool/instance-types",
    title="No instance type of a NodePool has what a pod requests",
    why="Karpenter adds no node for the pod, so the pod stays Pending.",
    function="filterInstanceTypesByRequirements",
)
LIMITS: Final = NODE_POOL.rule(
    "node-pool/limits",
    title="Pods request more than the limits of all NodePools",
    why="Karpenter adds no node above the limits of a NodePool, so pods stay Pending.",
    source="kubernetes-sigs/karpenter@226646810 pkg/controllers/provisioning/scheduling/scheduler.go",
    function="filterByRemainingResources",
    issues=("https://github.com/aws/karpenter-provider-aws/issues/8068",),
)
CLASS: Final = NODE_POOL.rule(
    "node-pool/node-class",
    title="A NodePool names a node class that does not exist",
    why="Karpenter ignores the NodePool, so it adds no node for the pod.",
    source="kubernetes-sigs/karpenter@226646810 pkg/controllers/nodepool/readiness/controller.go",
)

NODE_POOL_LOOKUPS: Final = (interest_in_fields(NodePool.gvk, "spec"), interest_in_fields(NodeOverlay.gvk))
_AWS: Final = "karpenter.k8s.aws"
_NODE_POOL: Final = "karpenter.sh/nodepool"
_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_FAMILY: Final = f"{_AWS}/instance-family"
_GPU_COUNT: Final = f"{_AWS}/instance-gpu-count"
_WELL_KNOWN: Final = frozenset(
    (
        *("topology.kubernetes.io/zone", "topology.kubernetes.io/region", _INSTANCE_TYPE, "kubernetes.io/arch"),
        *("kubernetes.io/os", "karpenter.sh/capacity-type", _NODE_POOL),
        *("node.kubernetes.io/windows-build", "kubernetes.io/hostname", "topology.k8s.aws/zone-id"),
        *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
        *("beta.kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/instance-type"),
    )
)
"""Labels that a NodePool may leave undefined, because the node gets them from its instance type and zone."""
_TYPES: Final = Path(__file__).with_name("aws_instances.yaml")
_MOST_NAMED: Final = 3


def known_node_pools(view: ClusterView) -> Items[NodePool] | None:
    """Return the NodePools of a whole cluster, None where they are not known or something may change their types."""
    return view.once(known_node_pools, lambda: _known_node_pools(view))


def _known_node_pools(view: ClusterView) -> Items[NodePool] | None:
    pools = view.list_visible(NodePool)
    if not view.is_whole(NodePool.gvk) or view.list_visible_json(NodeOverlay.gvk):
        return None
    return pools


@dataclass(frozen=True, slots=True)
class NewNodes:
    """The possible sources of a new node for a pod that fits no current node: a source, or NodePools that all rule the
    pod out.
    """

    source: str = ""
    excluded: tuple[Problem, ...] = ()


def judge_new_nodes(each: PodsAndNodes) -> NewNodes | None:
    """Return what may add a node for a pod, None where nothing adds any."""
    pools = known_node_pools(each.view) or ()
    if source := other_source_of_nodes(each.pods.spec, each.view, has_node_pools=bool(pools)):
        return NewNodes(source)
    excluded = []
    for pool in pools:
        problem = exclusion_of_pod(each.needs, pool, each.view)
        if problem is None:
            return NewNodes(f"NodePool {pool.name}")
        excluded.append(problem)
    return NewNodes(excluded=tuple(excluded)) if excluded else None


def validate_node_pools(subject: Subject) -> Iterator[Problem]:
    """Yield the pods for which no NodePool adds a node, where NodePools are all that adds nodes."""
    for each in subject.once(pods_and_nodes):
        new_nodes = None if each.fits_a_node else judge_new_nodes(each)
        problems: Iterable[Problem] = ()
        if new_nodes is not None and new_nodes.excluded:
            problems = (_problem_of_all_pools(each, new_nodes.excluded),)
        elif starts_all_pods_at_once(subject):
            problems = _problems_of_limits(each)
        yield from without_repeated_problems(problems, subject)


def starts_all_pods_at_once(subject: Subject) -> bool:
    """Return whether the pods of an object run at the same time, so that one that waits is missed."""
    return subject.group_kind in SERVING or subject.group_kind[0] in ("leaderworkerset.x-k8s.io", "kubeflow.org")


def _problem_of_all_pools(each: PodsAndNodes, excluded: Sequence[Problem]) -> Problem:
    others = len(excluded) - 1
    also = f", and {counted(others, 'other NodePool')} can add no node either" if others else ""
    message = f"fits no current node, and {excluded[0].message}{also}, so the pods stay Pending"
    return structs.replace(excluded[0], path=path_as_text(each.pods.podset.path), message=message)


def exclusion_of_pod(needs: PodNeeds, pool: NodePool, view: ClusterView) -> Problem | None:
    """Return the problem of one NodePool that adds no node for a pod, without its path; None where it may add one."""
    checks = (_excluded_by_class(pool, view), _excluded_by_replicas(pool), _excluded_by_labels(needs, pool))
    for excluded in (*checks, _excluded_by_taints(needs, pool), _excluded_by_limits(needs, pool)):
        if excluded is not None:
            return excluded
    return _excluded_by_types(needs, pool)


def _excluded_by_class(pool: NodePool, view: ClusterView) -> Problem | None:
    reference = pool.spec.template.spec.node_class_ref
    if not reference.name or not view.is_whole():
        return None
    kind = GroupVersionKind(reference.group, "v1", reference.kind)
    try:
        if view.cluster.get(kind, "", reference.name) is not None:
            return None
    except LookupFailed:  # a live view does not hold classes of nodes
        return None
    name = f"{reference.kind} {reference.name}"
    reason = f"NodePool {pool.name} names {name}, which does not exist, so Karpenter ignores the NodePool"
    return CLASS.problem("", reason, f"create {name}, or correct spec.template.spec.nodeClassRef of the NodePool")


def _excluded_by_replicas(pool: NodePool) -> Problem | None:
    if pool.spec.replicas is None:
        return None
    reason = f"NodePool {pool.name} has a fixed number of nodes"
    return _limits_problem("", reason, "raise spec.replicas of the NodePool")


def _excluded_by_labels(needs: PodNeeds, pool: NodePool) -> Problem | None:
    """Return why the labels of a NodePool rule a pod out: nodeSelector, and each term of required affinity."""
    selected = [_single_value(key, value) for key, value in needs.spec.node_selector.items()]
    for requirement in selected:
        if excluded := _excluded_by_requirement(requirement, pool):
            return excluded
    first = None
    for term in needs.spec.required_node_terms():
        problem = next(
            filter(None, (_excluded_by_requirement(_read(each), pool) for each in term.match_expressions)), None
        )
        if problem is None:
            return None
        first = first or problem
    return first


@dataclass(frozen=True, slots=True)
class _Requirement:
    key: str
    operator: str
    values: tuple[str, ...]


def _single_value(key: str, value: str) -> _Requirement:
    return _Requirement(key, "In", (value,))


def _read(requirement: SelectorRequirement) -> _Requirement:
    return _Requirement(requirement.key, requirement.operator, tuple(requirement.values))


def _excluded_by_requirement(wanted: _Requirement, pool: NodePool) -> Problem | None:
    label = pool.spec.template.metadata.labels.get(wanted.key)
    if wanted.key == _NODE_POOL:
        label = pool.name
    defined = [each for each in pool.spec.template.spec.requirements if each.key == wanted.key]
    shown = f"`{wanted.key}={wanted.values[0]}`" if wanted.values else f"label `{wanted.key}`"
    if label is None and not defined:
        if wanted.operator in ("NotIn", "DoesNotExist") or _may_be_undefined(wanted.key, pool):
            return None
        reason = f"NodePool {pool.name} does not define {shown}"
        return LABELS.problem("", reason, f"add {shown} to spec.template.metadata.labels of a NodePool")
    if _overlaps(wanted, label, defined):
        return None
    allowed = label or ", ".join(value for each in defined for value in each.values)
    reason = f"NodePool {pool.name} has {wanted.key} {allowed}, but the pod requires {shown}"
    return LABELS.problem("", reason, f"select `{wanted.key}={allowed}`, or change the requirements of the NodePool")


def _may_be_undefined(key: str, pool: NodePool) -> bool:
    group = pool.spec.template.spec.node_class_ref.group
    domain = key.partition("/")[0]
    if key in _WELL_KNOWN or domain in (group, _AWS):
        return True
    return group != _AWS and bool(group) and domain.endswith(group.partition(".")[2] or group)


def _overlaps(wanted: _Requirement, label: str | None, defined: Sequence[SelectorRequirement]) -> bool:
    """Return whether a value may meet a requirement of the pod and those of a NodePool; open if it is not known."""
    if wanted.operator == "DoesNotExist":
        return False
    listed = [set(each.values) for each in defined if each.operator == "In"]
    candidates = {label} if label is not None else set.intersection(*listed) if listed else None
    if wanted.operator == "In":
        candidates = set(wanted.values) if candidates is None else candidates & set(wanted.values)
    if candidates is None:
        return True
    others = [_read(each) for each in defined if each.operator != "In"]
    return any(value is not None and all(_meets(value, each) for each in (*others, wanted)) for value in candidates)


def _meets(value: str, requirement: _Requirement) -> bool:
    wanted = {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}
    return labels_meet_requirement({requirement.key: value}, SelectorRequirement.of(wanted))


def _excluded_by_taints(needs: PodNeeds, pool: NodePool) -> Problem | None:
    taints = [each for each in pool.spec.template.spec.taints if each.key not in needs.devices]
    taint = first_untolerated(taints, needs.spec.tolerations)
    if taint is None:
        return None
    shown = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    reason = f"the pod does not tolerate the taint `{shown}` of NodePool {pool.name}"
    return TAINTS.problem("", reason, f"tolerate `{shown}`")


def _excluded_by_limits(needs: PodNeeds, pool: NodePool) -> Problem | None:
    for name, wanted in (*needs.devices.items(), *needs.ordinary.items()):
        most = parse_amount_in_kueue_units(name, pool.spec.limits.get(name))
        if most is not None and wanted > most:
            amount, limit = (format_amount_in_kueue_units(name, each) for each in (wanted, most))
            reason = (
                f"NodePool {pool.name} may have {limit} `{name}` in all by its limits, but one pod requests {amount}"
            )
            return _limits_problem("", reason, f"raise `limits` of the NodePool, or request less `{name}`")
    return None


def _excluded_by_types(needs: PodNeeds, pool: NodePool) -> Problem | None:
    """Return why no instance type of a NodePool has what a pod requests; None where not all types are known."""
    types = _types_of_pool(pool)
    if types is None or any(_has_amounts(needs, each) and _is_within_limits(each, pool) for each in types):
        return None
    names = ", ".join(each.name for each in types[:_MOST_NAMED])
    more = f" and {len(types) - _MOST_NAMED} others" if len(types) > _MOST_NAMED else ""
    amounts = " and ".join(f"{count} `{name}`" for name, count in needs.devices.items())
    lacking = [
        name for name, count in needs.devices.items() if all(each.amounts.get(name, 0) < count for each in types)
    ]
    most = ""
    if lacking:
        largest = max((each.amounts.get(lacking[0], 0) for each in types), default=0)
        most = f" with at most {largest} `{lacking[0]}`"
    reason = f"NodePool {pool.name} allows only the instance types {names}{more}{most}, but the pod requests {amounts}"
    return INSTANCE_TYPES.problem("", reason, "allow a larger instance type in the requirements of the NodePool")


def _has_amounts(needs: PodNeeds, offer: NodeOffer) -> bool:
    selected = {key: value for key, value in needs.spec.node_selector.items() if key in offer.labels}
    return needs.has_amounts(offer) and all(offer.labels[key] == value for key, value in selected.items())


def _is_within_limits(offer: NodeOffer, pool: NodePool) -> bool:
    bounds = {name: parse_amount_in_kueue_units(name, value) for name, value in pool.spec.limits.items()}
    return all(most is None or offer.amounts.get(name, 0) <= most for name, most in bounds.items())


def _types_of_pool(pool: NodePool) -> tuple[NodeOffer, ...] | None:
    """Return the instance types that a NodePool allows, None where it may allow one that the table does not have."""
    if pool.spec.template.spec.node_class_ref.group != _AWS:
        return None
    known = aws_instance_types()
    types: list[NodeOffer] | None = None
    for requirement in pool.spec.template.spec.requirements:
        if requirement.operator != "In":
            continue
        values = set(requirement.values)
        if requirement.key == _INSTANCE_TYPE and values <= known.keys():
            types = [known[name] for name in sorted(values)]
        elif requirement.key == _FAMILY and values <= {name.partition(".")[0] for name in known}:
            types = types or [each for name, each in known.items() if name.partition(".")[0] in values]
        elif requirement.key == _GPU_COUNT and types is None:
            types = [each for each in known.values() if each.labels.get(_GPU_COUNT) in values]
    if types is None:
        return None
    requirements = [_read(each) for each in pool.spec.template.spec.requirements]
    return tuple(
        each
        for each in types
        if all(_meets(each.labels[wanted.key], wanted) for wanted in requirements if wanted.key in each.labels)
    )


@cache
def aws_instance_types() -> Mapping[str, NodeOffer]:
    """Return the instance types of AWS with accelerators, by name."""
    (document,) = yamlfile.read(_TYPES)
    return {row["name"]: _offer_of_type(row) for row in document.value["types"]}


def _offer_of_type(row: Mapping[str, object]) -> NodeOffer:
    amounts, name = dict[str, int](), str(row["name"])
    labels = {_INSTANCE_TYPE: name, _FAMILY: name.partition(".")[0]}
    for key, value in row.items():
        if key in ("cpu", "memory") or "/" in key:
            amounts[key] = parse_amount_in_kueue_units(key, str(value)) or 0
        elif key != "name":
            labels[f"{_AWS}/{key}"] = str(value)
    gpus = sum(count for key, count in amounts.items() if key.endswith(".com/gpu"))
    if gpus:
        labels[_GPU_COUNT] = str(gpus)
    return NodeOffer(name, labels, {}, (), amounts)


def _problems_of_limits(each: PodsAndNodes) -> Iterator[Problem]:
    """Yield pods that run at the same time and are more than NodePools and nodes together can hold."""
    pools = known_node_pools(each.view) or ()
    compatible = [pool for pool in pools if exclusion_of_pod(each.needs, pool, each.view) is None]
    count = each.pods.pod_count
    if count <= 1 or not compatible or other_source_of_nodes(each.pods.spec, each.view, has_node_pools=True):
        return
    own = [offer for offer in each.fitting if _NODE_POOL not in offer.labels]
    for name, wanted in each.needs.devices.items():
        limits = [parse_amount_in_kueue_units(name, pool.spec.limits.get(name)) for pool in compatible]
        most = sum(limit or 0 for limit in limits) + sum(offer.amounts.get(name, 0) for offer in own)
        if None not in limits and wanted * count > most:
            names = ", ".join(pool.name for pool in compatible[:_MOST_NAMED])
            also = f" beside {counted(len(own), 'current node')}" if own else ""
            message = (
                f"NodePool {names}{also} may have {most} `{name}` by its limits, and the {count} pods request "
                f"{wanted * count}, so some pods wait for ever"
            )
            fix = f"raise `limits` of the NodePool, or run {counted(max(1, most // wanted), 'pod')}"
            yield _limits_problem(path_as_text(each.pods.podset.path), message, fix)


def _limits_problem(path: str, message: str, fix: str) -> Problem:
    return LIMITS.problem(path, message, fix)
