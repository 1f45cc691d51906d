"""Whether Karpenter may add a node for a pod: NodePools with their labels, taints, instance types and limits.

A pod that fits no current node waits for ever only if NodePools are the only source of nodes, and every NodePool
excludes the pod. Unknown properties of a NodePool count as matching. Preferences of pods are not compared, because
Karpenter drops preferences that it cannot meet. Karpenter counts the nodes in `limits` from release 1.11 on. A
problem of this limit is conditional unless a Deployment has the image of AWS's controller with a release.

Source: kubernetes-sigs/karpenter@226646810 pkg/scheduling/requirements.go Compatible, nodeclaim.go CanAdd,
scheduler.go filterByRemainingResources; kubernetes-sigs/karpenter@9f749d9f6 for the limit of nodes;
aws/karpenter-provider-aws@1d927085d for the labels and types of AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import path_as_text
from webhook.apimachinery.releases import Release
from webhook.cluster.interest import interest_in_fields
from webhook.errors import LookupFailed
from webhook.facts.gpu.device_pods import BATCH, PLACED, without_repeated_problems
from webhook.facts.kinds import TRAINER
from webhook.facts.nodes.node_offers import (
    NodeOffer,
    PodNeeds,
    PodsAndNodes,
    images_of_deployments,
    known_offers,
    pods_and_nodes,
)
from webhook.facts.nodes.node_pool_types import (
    AWS,
    INSTANCE_TYPE,
    Requirement,
    bounds_of_requirements,
    is_of_aws,
    known_types,
    meets,
    read_requirement,
    requirements_of_pod,
    requirements_of_pool,
)
from webhook.facts.nodes.types import NODE_POOL, NodeOverlay, NodePool
from webhook.facts.pods.node_selection import first_untolerated
from webhook.facts.pods.node_sources import other_source_of_nodes
from webhook.facts.resource_units import format_amount_in_kueue_units, parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.collections import Items
from webhook.typed.pods import SelectorRequirement

LABELS: Final = NODE_POOL.rule(
    "node-pool/labels",
    title="Neither a node nor a NodePool has the labels that a pod requires",
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
    title="The limits of each NodePool leave no room for a node that fits",
    why="Karpenter adds no node above the limits of a NodePool, so pods stay Pending.",
    source="kubernetes-sigs/karpenter@226646810 pkg/controllers/provisioning/scheduling/scheduler.go",
    function="filterByRemainingResources",
    issues=("https://github.com/aws/karpenter-provider-aws/issues/8068",),
)
CLASS: Final = NODE_POOL.rule(
    "node-pool/node-class",
    title="A NodePool names a node class that does not exist",
    why="Karpenter ignores the NodePool and adds no node for the pod.",
    source="kubernetes-sigs/karpenter@226646810 pkg/controllers/nodepool/readiness/controller.go",
)

NODE_POOL_LOOKUPS: Final = (interest_in_fields(NodePool.gvk, "spec"), interest_in_fields(NodeOverlay.gvk))
NODE_CLASSES: Final = frozenset(((AWS, "EC2NodeClass"), ("karpenter.azure.com", "AKSNodeClass")))
"""The node classes of Karpenter's providers. Classes of other kinds are not looked up, so whether they exist is not
known.
"""
_NODE_POOL: Final = "karpenter.sh/nodepool"
_WELL_KNOWN: Final = frozenset(
    (
        *("topology.kubernetes.io/zone", "topology.kubernetes.io/region", INSTANCE_TYPE, "kubernetes.io/arch"),
        *("kubernetes.io/os", "karpenter.sh/capacity-type", _NODE_POOL),
        *("node.kubernetes.io/windows-build", "kubernetes.io/hostname", "topology.k8s.aws/zone-id"),
        *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
        *("beta.kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/instance-type"),
    )
)
"""Labels that a NodePool may leave undefined, because the node gets them from its instance type and zone."""
_OF_TRAININGS: Final = frozenset(("kubeflow.org", TRAINER))
"""The groups of kinds with pods that train together."""
_NODES: Final = "nodes"
"""The key in `limits` of a NodePool that limits the number of nodes."""
_COUNTS_NODES: Final[Release] = (1, 11)
"""The first release of Karpenter that counts nodes against `limits`."""
_CONTROLLER: Final = "karpenter/controller"
_IF_COUNTED: Final = "from Karpenter 1.11 on, "
_MOST_NAMED: Final = 3
_RAISE: Final = "ask the administrator to raise `limits` of the NodePool"
_LARGER: Final = "ask the administrator to allow a larger instance type in the requirements of the NodePool"


def known_node_pools(view: ClusterView) -> Items[NodePool] | None:
    """Return the NodePools of a whole cluster; None if the NodePools are not known, or if a NodeOverlay may change
    their instance types.
    """
    return view.once(known_node_pools, lambda: _known_node_pools(view))


def _known_node_pools(view: ClusterView) -> Items[NodePool] | None:
    pools = view.list_visible(NodePool)
    if not view.is_whole(NodePool.gvk) or view.list_visible_json(NodeOverlay.gvk):
        return None
    return pools


def _counts_nodes(pool: NodePool, view: ClusterView) -> bool | None:
    """Return whether Karpenter counts nodes against the limits of a NodePool; None if its release is not known."""
    images = map(parse_image_name, images_of_deployments(view)) if is_of_aws(pool) else ()
    releases = {each for each in (image.release_of(_CONTROLLER) for image in images) if each is not None}
    return releases.pop() >= _COUNTS_NODES if len(releases) == 1 else None


@dataclass(frozen=True, slots=True)
class NewNodes:
    """What may add a node for a pod that fits no current node.

    Args:
        source: what may add a node; "" if only NodePools add nodes and every NodePool excludes the pod.
        excluded: for each NodePool, why the NodePool adds no node for the pod.
    """

    source: str = ""
    excluded: tuple[Problem, ...] = ()


def judge_new_nodes(each: PodsAndNodes) -> NewNodes | None:
    """Return what may add a node for a pod; None if nothing adds nodes."""
    pools = known_node_pools(each.view)
    if pools is None and (named := next(iter(each.view.list_visible(NodePool)), None)) is not None:
        return NewNodes(f"NodePool {named.name}")  # a NodeOverlay may change its instance types
    pools = pools or Items((), each.view.deadline)
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
    """Report pods for which no NodePool adds a node, if only NodePools add nodes.

    If NodePools may add a node for each pod, the limits of the NodePools are compared with all pods together.
    """
    pods = subject.once(pods_and_nodes)
    problems = [problem for each in pods for problem in _check_all_pools(each)]
    yield from without_repeated_problems(problems, subject)
    if pods and not problems and known_node_pools(pods[0].view) and starts_all_pods_at_once(subject):
        yield from without_repeated_problems(_check_limits_of_all_pods(pods), subject)


def _check_all_pools(each: PodsAndNodes) -> Iterator[Problem]:
    new_nodes = None if each.fits_a_node else judge_new_nodes(each)
    if new_nodes is not None and new_nodes.excluded:
        yield _problem_of_all_pools(each, new_nodes.excluded)


def starts_all_pods_at_once(subject: Subject) -> bool:
    """Return whether the pods of an object must run at the same time. Then a waiting pod is a problem."""
    return subject.group_kind in PLACED - BATCH or subject.group_kind[0] in _OF_TRAININGS


def _problem_of_all_pools(each: PodsAndNodes, excluded: Sequence[Problem]) -> Problem:
    others = len(excluded) - 1
    also = f", and {counted(others, 'other NodePool')} can add no node either" if others else ""
    message = f"fits no current node, and {excluded[0].message}{also}, so the pods stay Pending"
    is_conditional = any(problem.is_conditional for problem in excluded)
    path = path_as_text(each.pods.podset.path)
    return structs.replace(excluded[0], path=path, message=message, is_conditional=is_conditional)


def exclusion_of_pod(needs: PodNeeds, pool: NodePool, view: ClusterView) -> Problem | None:
    """Return why a NodePool adds no node for a pod, as a problem without a path; None if the NodePool may add one."""
    checks = (_excluded_by_class(pool, view), _excluded_by_replicas(pool, view), _excluded_by_labels(needs, pool))
    for excluded in (*checks, _excluded_by_taints(needs, pool), _excluded_by_limits(needs, pool, view)):
        if excluded is not None:
            return excluded
    return _excluded_by_types(needs, pool)


def _excluded_by_class(pool: NodePool, view: ClusterView) -> Problem | None:
    reference = pool.spec.template.spec.node_class_ref
    if not reference.name or (reference.group, reference.kind) not in NODE_CLASSES or not view.is_whole():
        return None
    kind = GroupVersionKind(reference.group, "v1", reference.kind)
    try:
        if view.cluster.get(kind, "", reference.name) is not None:
            return None
    except LookupFailed:  # a live view has no node classes
        return None
    name = f"{reference.kind} {reference.name}"
    reason = f"NodePool {pool.name} names {name}, which does not exist (Karpenter ignores the NodePool)"
    fix = f"ask the administrator to create {name}, or to correct spec.template.spec.nodeClassRef of the NodePool"
    return CLASS.problem("", reason, fix)


def _excluded_by_replicas(pool: NodePool, view: ClusterView) -> Problem | None:
    """Return why a NodePool with `replicas` adds no node for a pod: it already has this number of nodes.

    If nodes are missing, the result is None, because Karpenter adds these nodes without waiting for pods.
    """
    wanted = pool.spec.replicas
    if wanted is None:
        return None
    nodes_of_pool = sum(offer.labels.get(_NODE_POOL) == pool.name for offer in known_offers(view))
    if nodes_of_pool < wanted:
        return None
    nodes = f"a fixed number of nodes, which is {wanted}"
    fix = "ask the administrator to raise spec.replicas of the NodePool"
    return _limits_problem("", f"NodePool {pool.name} has {nodes}", fix)


def _excluded_by_labels(needs: PodNeeds, pool: NodePool) -> Problem | None:
    """Return why the labels of a NodePool exclude a pod; None if the labels may meet the nodeSelector and one term of
    the required affinity of the pod.
    """
    first = None
    for requirements in requirements_of_pod(needs):
        problem = next(filter(None, (_excluded_by_requirement(each, pool) for each in requirements)), None)
        if problem is None:
            return None
        first = first or problem
    return first


def _excluded_by_requirement(wanted: Requirement, pool: NodePool) -> Problem | None:
    label = pool.spec.template.metadata.labels.get(wanted.key)
    if wanted.key == _NODE_POOL:
        label = pool.name
    defined = [each for each in pool.spec.template.spec.requirements if each.key == wanted.key]
    shown = f"`{wanted.in_words}`" if wanted.values else f"label `{wanted.key}`"
    if label is None and not defined:
        if wanted.operator in ("NotIn", "DoesNotExist") or _may_be_undefined(wanted.key, pool):
            return None
        reason = f"NodePool {pool.name} does not define {shown}"
        add = f"ask the administrator to add {shown} to spec.template.metadata.labels of a NodePool"
        return LABELS.problem("", reason, f"remove this requirement, or {add}")
    if _overlaps(wanted, label, defined):
        return None
    if wanted.operator == "DoesNotExist":
        shown = f"no {shown}"
    change = "ask the administrator to change the requirements of the NodePool"
    if label is None and any(each.operator != "In" for each in defined):
        allowed = " and ".join(f"`{read_requirement(each).in_words}`" for each in defined)
        reason = f"NodePool {pool.name} requires {allowed}, but the pod requires {shown}"
        return LABELS.problem("", reason, f"select a value that the NodePool allows, or {change}")
    allowed = label or ", ".join(value for each in defined for value in each.values)
    reason = f"NodePool {pool.name} has {wanted.key} {allowed}, but the pod requires {shown}"
    select = "remove this requirement" if wanted.operator == "DoesNotExist" else f"select `{wanted.key}={allowed}`"
    return LABELS.problem("", reason, f"{select}, or {change}")


def _may_be_undefined(key: str, pool: NodePool) -> bool:
    group = pool.spec.template.spec.node_class_ref.group
    domain = key.partition("/")[0]
    if key in _WELL_KNOWN or domain in (group, AWS):
        return True
    return group != AWS and bool(group) and domain.endswith(group.partition(".")[2] or group)


def _overlaps(wanted: Requirement, label: str | None, defined: Sequence[SelectorRequirement]) -> bool:
    """Return whether some value of a label may meet both the pod's requirement and the requirements of a NodePool; True
    if this is not known.
    """
    if wanted.operator == "DoesNotExist":
        return False
    listed = [set(each.values) for each in defined if each.operator == "In"]
    candidates = {label} if label is not None else set.intersection(*listed) if listed else None
    if wanted.operator == "In":
        candidates = set(wanted.values) if candidates is None else candidates & set(wanted.values)
    if candidates is None:
        return True
    others = [read_requirement(each) for each in defined if each.operator != "In"]
    return any(value is not None and all(meets(value, each) for each in (*others, wanted)) for value in candidates)


def _excluded_by_taints(needs: PodNeeds, pool: NodePool) -> Problem | None:
    taints = [each for each in pool.spec.template.spec.taints if each.key not in needs.devices]
    taint = first_untolerated(taints, needs.tolerations)
    if taint is None:
        return None
    shown = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    reason = f"the pod does not tolerate the taint `{shown}` of NodePool {pool.name}"
    return TAINTS.problem("", reason, f"tolerate `{shown}`")


def _excluded_by_limits(needs: PodNeeds, pool: NodePool, view: ClusterView) -> Problem | None:
    limits = pool.spec.limits
    no_nodes, counts = None, _counts_nodes(pool, view)
    if parse_amount_in_kueue_units(_NODES, limits.get(_NODES)) == 0 and counts is not False:
        reason = f"{'' if counts else _IF_COUNTED}the limits of NodePool {pool.name} allow 0 nodes"
        no_nodes = _limits_problem("", reason, _RAISE, is_conditional=not counts)
        if counts:
            return no_nodes
    wanted = {**needs.devices, **needs.ordinary}
    for name, amount in wanted.items():
        most = parse_amount_in_kueue_units(name, limits.get(name))
        if most is not None and amount > most:
            shown, limit = (format_amount_in_kueue_units(name, each) for each in (amount, most))
            reason = f"the limits of NodePool {pool.name} allow {limit} `{name}` in all, but one pod requests {shown}"
            return _limits_problem("", reason, f"{_RAISE}, or request less `{name}`")
    for bound in bounds_of_requirements(requirements_of_pool(pool)) if is_of_aws(pool) else ():
        for name in bound.names if bound.is_least else ():
            most = parse_amount_in_kueue_units(name, limits.get(name))
            if most is not None and name in wanted and bound.amount > most:
                least, limit = (format_amount_in_kueue_units(name, each) for each in (bound.amount, most))
                reason = (
                    f"the smallest node of NodePool {pool.name} has {least} `{name}`, but the limits of the NodePool "
                    f"allow {limit} in all"
                )
                return _limits_problem("", reason, f"{_RAISE}, or to allow smaller instance types")
    return no_nodes


def _excluded_by_types(needs: PodNeeds, pool: NodePool) -> Problem | None:
    """Return why no instance type of a NodePool has what a pod requests; None if a type has it, or may have it."""
    first = None
    for requirements in requirements_of_pod(needs) if is_of_aws(pool) else ():
        problem = _excluded_by_bounds(needs, pool, requirements) or _excluded_by_known_types(needs, pool, requirements)
        if problem is None:
            return None
        first = first or problem
    return first


def _excluded_by_bounds(needs: PodNeeds, pool: NodePool, of_pod: Sequence[Requirement]) -> Problem | None:
    """Return the problem if a requirement with a number limits the nodes to less than the pod requests."""
    wanted = {**needs.devices, **needs.ordinary}
    of_pool = requirements_of_pool(pool)
    for requirements, who in ((of_pool, f"NodePool {pool.name} allows"), (of_pod, "the pod selects")):
        for bound in bounds_of_requirements(requirements):
            for name in bound.names if not bound.is_least else ():
                if wanted.get(name, 0) > bound.amount:
                    most, amount = (format_amount_in_kueue_units(name, each) for each in (bound.amount, wanted[name]))
                    reason = f"{who} only nodes with at most {most} `{name}` by `{bound.requirement.as_text}`"
                    reason += f", but the pod requests {amount}"
                    fix = f"request at most {most}, or {_LARGER}"
                    if requirements is of_pod:
                        fix = "select nodes with more of this resource, or request less"
                    return _types_problem(reason, fix)
    return None


def _excluded_by_known_types(needs: PodNeeds, pool: NodePool, of_pod: Sequence[Requirement]) -> Problem | None:
    types = known_types(pool, of_pod)
    if types is None or any(needs.has_amounts(each) and _is_within_limits(each, pool) for each in types):
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
    if not types:
        reason = f"NodePool {pool.name} allows no instance type that the pod selects"
        return _types_problem(reason, "select an instance type that the NodePool allows")
    large = next((each for each in types if needs.has_amounts(each)), None)
    if large is not None:
        return _problem_of_whole_nodes(large, pool)
    reason = f"NodePool {pool.name} allows only the instance types {names}{more}{most}, but the pod requests {amounts}"
    if any(each.key == INSTANCE_TYPE for each in of_pod):
        reason = f"the pod selects the instance types {names}{more}{most}, but requests {amounts}"
        return _types_problem(reason, "select a larger instance type, or request less")
    return _types_problem(reason, f"request less, or {_LARGER}")


def _problem_of_whole_nodes(offer: NodeOffer, pool: NodePool) -> Problem:
    """Return the problem of an instance type that is large enough for a pod, but above the limits of the NodePool."""
    bounds = ((name, parse_amount_in_kueue_units(name, value)) for name, value in pool.spec.limits.items())
    name, most = next((name, most) for name, most in bounds if most is not None and offer.amounts.get(name, 0) > most)
    has, limit = (format_amount_in_kueue_units(name, each) for each in (offer.amounts[name], most))
    reason = (
        f"a node {offer.name} of NodePool {pool.name} has {has} `{name}`, but the limits of the NodePool allow {limit} "
        "in all"
    )
    return _limits_problem("", reason, f"{_RAISE}, or to allow smaller instance types")


def _is_within_limits(offer: NodeOffer, pool: NodePool) -> bool:
    bounds = {name: parse_amount_in_kueue_units(name, value) for name, value in pool.spec.limits.items()}
    return all(most is None or offer.amounts.get(name, 0) <= most for name, most in bounds.items())


def _check_limits_of_all_pods(pods: Sequence[PodsAndNodes]) -> Iterator[Problem]:
    """Report pods that run at the same time but need more than the NodePools and the nodes have together. The pods of
    each template are checked first. If the same NodePools may add nodes for all templates, all pods are checked too.
    """
    compatible = {each.pods.podset.path: _compatible_pools(each) for each in pods}
    of_templates = [
        problem for each in pods for problem in _problems_of_limits([each], compatible[each.pods.podset.path])
    ]
    yield from of_templates
    pools = compatible[pods[0].pods.podset.path]
    if not of_templates and len(pods) > 1 and all(others == pools for others in compatible.values()):
        yield from _problems_of_limits(pods, pools)


def _compatible_pools(each: PodsAndNodes) -> tuple[NodePool, ...]:
    pools = known_node_pools(each.view) or ()
    return tuple(pool for pool in pools if exclusion_of_pod(each.needs, pool, each.view) is None)


def _problems_of_limits(pods: Sequence[PodsAndNodes], pools: Sequence[NodePool]) -> Iterator[Problem]:
    """Report NodePools with limits below the sum of what pods request."""
    count, view = sum(each.pods.pod_count for each in pods), pods[0].view
    if count <= 1 or not pools or 0 in (each.pods.pod_count for each in pods):
        return
    if any(other_source_of_nodes(each.pods.spec, view, has_node_pools=True) for each in pods):
        return
    current_nodes = {offer.name: offer for each in pods for offer in each.fitting if _NODE_POOL not in offer.labels}
    also = f" beside {counted(len(current_nodes), 'current node')}" if current_nodes else ""
    which = f"NodePool {', '.join(pool.name for pool in pools[:_MOST_NAMED])}"
    at = path_as_text(pods[0].pods.podset.path)
    for name in dict.fromkeys(name for each in pods for name in (*each.needs.devices, *each.needs.ordinary)):
        wanted = sum(each.pods.pod_count * _amount(each.needs, name) for each in pods)
        limits = [parse_amount_in_kueue_units(name, pool.spec.limits.get(name)) for pool in pools]
        most = sum(limit or 0 for limit in limits) + sum(offer.amounts.get(name, 0) for offer in current_nodes.values())
        if None in limits or wanted <= most:
            continue
        shown, limit = (format_amount_in_kueue_units(name, each) for each in (wanted, most))
        message = f"the limits of {which} allow {limit} `{name}`{also}, but the {count} pods request {shown}"
        fits = most // _amount(pods[0].needs, name) if len(pods) == 1 else 0
        fewer = f", or run {counted(fits, 'pod')}" if fits else ", or request less"
        yield _limits_problem(at, f"{message}, so some pods wait for ever", f"{_RAISE}{fewer}")
        return
    if len(pods) == 1 and pods[0].needs.devices:
        yield from _problems_of_nodes(pods[0], pools, (which, also), current_nodes.values())


def _problems_of_nodes(
    each: PodsAndNodes, pools: Sequence[NodePool], pools_as_text: tuple[str, str], current_nodes: Iterable[NodeOffer]
) -> Iterator[Problem]:
    """Report more pods than fit on the nodes of all NodePools, if the limits count nodes."""
    counted_by_all = [_counts_nodes(pool, each.view) for pool in pools]
    if False in counted_by_all:
        return
    limits = [parse_amount_in_kueue_units(_NODES, pool.spec.limits.get(_NODES)) for pool in pools]
    of_node = [_most_pods_of_node(each.needs, pool) for pool in pools]
    if None in limits or None in of_node:
        return
    most = sum((limit or 0) * (pods or 0) for limit, pods in zip(limits, of_node, strict=True))
    most += sum(each.needs.pods_on(offer) for offer in current_nodes)
    if each.pods.pod_count > most:
        nodes = counted(sum(limit or 0 for limit in limits), "node")
        which, also = pools_as_text
        is_conditional = None in counted_by_all
        since = _IF_COUNTED if is_conditional else ""
        message = f"{since}the limits of {which} allow {nodes}{also}, which hold {most} of the "
        message += f"{each.pods.pod_count} pods, so some pods wait for ever"
        fix, path = f"{_RAISE}, or run fewer pods", path_as_text(each.pods.podset.path)
        yield _limits_problem(path, message, fix, is_conditional=is_conditional)


def _most_pods_of_node(needs: PodNeeds, pool: NodePool) -> int | None:
    """Return how many of these pods at most fit a node of a NodePool; None if its instance types are unknown."""
    counts: list[int] = []
    for requirements in requirements_of_pod(needs):
        types = known_types(pool, requirements)
        if types is not None:
            counts.append(max((needs.pods_on(offer) for offer in types), default=0))
            continue
        bounds = [each for each in bounds_of_requirements(requirements_of_pool(pool)) if not each.is_least]
        pods = [
            each.amount // _amount(needs, name) for each in bounds for name in each.names if _amount(needs, name) > 0
        ]
        if not pods or not is_of_aws(pool):
            return None
        counts.append(min(pods))
    return max(counts)


def _amount(needs: PodNeeds, name: str) -> int:
    return needs.devices.get(name, 0) or needs.ordinary.get(name, 0)


def _types_problem(reason: str, fix: str) -> Problem:
    return INSTANCE_TYPES.problem("", reason, fix)


def _limits_problem(path: str, message: str, fix: str, *, is_conditional: bool = False) -> Problem:
    return LIMITS.problem(path, message, fix, is_conditional=is_conditional)
