"""Finds pods that fit no node. The nodes lack devices, labels, CPUs or memory, or have taints that the pods do not
tolerate.

The devices of nodes are known only in a view of a whole cluster. If an autoscaler may add nodes, it is not known
whether a pod that fits no current node waits for ever; node_pools.py compares the pod with each NodePool of Karpenter.
The comparison assumes that the nodes are empty. It ignores cordons and taints about the health of a node, because these
are temporary. With sharing, MIG or partitions, or after a change of names, nodes may offer the requested device under
another name.

Sources of the names: NVIDIA/k8s-device-plugin@1b826acc6 api/config/v1 and internal/lm; ROCm/k8s-device-plugin@ed764684;
https://docs.aws.amazon.com/eks/latest/userguide/eks-neuron.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import path_as_text
from webhook.facts.gpu.device_pods import BATCH, PLACED, without_repeated_problems
from webhook.facts.gpu.devices import device_of_resource_name
from webhook.facts.kinds import JOB_SET, LEADER_WORKER_SET, TRAIN_JOB
from webhook.facts.nodes.node_offers import NodeOffer, PodNeeds, PodsAndNodes, largest_amounts, pods_and_nodes
from webhook.facts.nodes.node_pool_types import Requirement, read_requirement, requirements_of_pod
from webhook.facts.nodes.node_pools import judge_new_nodes
from webhook.facts.nodes.types import NODE_DEVICES
from webhook.facts.pods.node_selection import labels_meet_requirement
from webhook.facts.resource_units import format_amount_with_resource_name
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import merge_train_job
from webhook.facts.view import ClusterView
from webhook.facts.volcano_objects.types import Job
from webhook.rules.problem import MissingObject, Problem
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.cluster_objects import Node

OFFERED: Final = NODE_DEVICES.rule(
    "node-devices/offered",
    title="No node has the device that the pod requests",
    why="The pods stay Pending until a node with these devices joins.",
    function="fitsRequest",
)
LARGEST_NODE: Final = NODE_DEVICES.rule(
    "node-devices/largest-node",
    title="No node has as many devices as the pod requests",
    why="All devices of a pod must be on one node, so the pod stays Pending until a larger node exists.",
    function="fitsRequest",
    issues=("https://github.com/volcano-sh/volcano/issues/1295",),
)
CPU_AND_MEMORY: Final = NODE_DEVICES.rule(
    "node-devices/cpu-and-memory",
    title="The nodes with the devices have too little CPU, memory, storage or huge pages",
    why=(
        "A pod runs on one node. It stays Pending if the nodes with its devices have less CPU, memory, ephemeral "
        "storage or huge pages than it requests."
    ),
    function="fitsRequest",
    issues=("https://github.com/volcano-sh/volcano/issues/1295",),
)
LABELS: Final = NODE_DEVICES.rule(
    "node-devices/labels",
    title="No node has the labels that a pod with devices requires",
    why="The scheduler places a pod only on a node that nodeSelector and required affinity select.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go",
    function="Filter",
)
TAINTS: Final = NODE_DEVICES.rule(
    "node-devices/taints",
    title="A pod does not tolerate the taints of the nodes with the devices that it requests",
    why="The scheduler places the pod on none of these nodes, so the pod stays Pending.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go",
    function="Filter",
)
TOGETHER: Final = NODE_DEVICES.rule(
    "node-devices/together",
    title="No node has both the labels and the devices that a pod requires",
    why="The nodes with the labels have fewer devices than the pod requests, so the pod stays Pending.",
    function="fitsRequest",
)
ALL_PODS: Final = NODE_DEVICES.rule(
    "node-devices/all-pods",
    title="The nodes do not have devices for all pods that must run together",
    why="Some pods stay Pending, and the other pods wait for the Pending pods.",
    function="fitsRequest",
)
SOME_PODS: Final = NODE_DEVICES.rule(
    "node-devices/some-pods",
    title="The nodes do not have devices for all pods, but the running pods work without the others",
    why="Some pods stay Pending. The running pods do not wait for the Pending pods.",
    function="fitsRequest",
    fails="silent",
)
SHARED_SUFFIX: Final = "-SHARED"
"""GPU Feature Discovery appends this suffix to the product in a label if the GPUs are shared under their usual resource
name.
"""
_MOST_VALUES: Final = 4
_PROPERTY_OF_RULE: Final = {
    "cpu-and-memory": " with the CPUs and memory of a pod",
    "labels": " with the labels that a pod requires",
    "taints": " with taints that a pod tolerates",
    "together": " with the labels that a pod requires",
}
"""The property that no node with the devices has, as text for a message, by the name of the rule."""
_GPU: Final = "nvidia.com/gpu"
_SLICE: Final = "nvidia.com/mig-"
_STRATEGY: Final = "nvidia.com/mig.strategy"
_PARTITION: Final = "amd.com/compute-memory-partition"
_AMD_PARTITION: Final = re.compile(r"amd\.com/[a-z]{2,4}_nps[0-9]")
"""A resource of a partition. A plugin with the naming strategy `single` offers the resource as amd.com/gpu."""
_NEURON: Final = "aws.amazon.com/"
_VOLCANO_JOB: Final = ("batch.volcano.sh", "Job")
_TRAINING_OPERATOR: Final = "kubeflow.org"
_RAY: Final = "ray.io"
_RAY_GANG: Final = "ray.io/gang-scheduling-enabled"
_RAY_SCHEDULER: Final = "ray.io/scheduler-name"
_GANG_SCHEDULERS: Final = ("volcano", "kai-scheduler", "scheduler-plugins")
_KAI: Final = "kai-scheduler"
_IN_GROUPS: Final = frozenset(
    (
        LEADER_WORKER_SET,
        ("disaggregatedset.x-k8s.io", "DisaggregatedSet"),
        ("grove.io", "PodCliqueSet"),
        ("workload.serving.volcano.sh", "ModelServing"),
    )
)
"""Kinds with groups of pods. If a group lacks one of its pods, this group does not work, but the other groups work."""
_SHARED: Final = ".shared"
_MONITOR: Final = "monitor"
_PRODUCT: Final = "nvidia.com/gpu.product"
_INVALID: Final = "-MIG-INVALID"
"""GPU Feature Discovery appends this suffix to the product if the MIG strategy is single, but the node has no slices,
or has slices of several profiles.
"""


def validate_node_devices(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that exclude pods from all nodes of a cluster; node_pools.py compares pods with NodePools."""
    pods = subject.once(pods_and_nodes)
    if pods and all(each.fits_a_node for each in pods):
        yield from without_repeated_problems(_check_all_pods(pods, subject), subject)
        return
    for each in pods:
        if not each.fits_a_node:
            yield from without_repeated_problems(problems_without_node(each), subject)


def problems_without_node(each: PodsAndNodes) -> Iterator[Problem]:
    """Yield the problems that exclude pods from all current nodes. If a matching node may be added, the problems are
    yielded as not checked. If only NodePools may add nodes and all NodePools exclude the pods, nothing is yielded,
    because node_pools.py reports the pods.
    """
    new_nodes = judge_new_nodes(each)
    for problem in _problems_of_pods(each):
        if new_nodes is None:
            yield problem
        elif new_nodes.source:
            yield _problem_of_open_nodes(problem, each, new_nodes.source)


class Shortage(NamedTuple):
    """Pods that run at the same time, and for which the nodes have too few devices.

    Args:
        at: the pods of the template that is named in messages.
        wanted: how many pods of the template run, or how many devices all pods request.
        most: for how many of these pods the nodes have devices, or how many devices the nodes have.
        resource: the resource if several templates together request too much; otherwise "".
    """

    at: PodsAndNodes
    wanted: int
    most: int
    resource: str = ""

    @property
    def some_pods(self) -> str:
        """Return a sentence about pods that work alone."""
        if self.resource:
            return self.all_pods
        of = f"{self.most} of {counted(self.wanted, 'pod')} with {_devices_as_text(self.at.needs)} each"
        return f"the nodes have devices for {of}{_files_of_nodes(self.at.view)}, so some pods stay Pending"

    @property
    def all_pods(self) -> str:
        """Return a sentence about pods that work together."""
        pods = f"{counted(self.wanted, 'pod')} with {_devices_as_text(self.at.needs)} each"
        message = f"{pods} run at the same time, but the nodes have devices for {self.most}"
        if self.resource:
            request = f"the pods that run at the same time request {self.wanted} `{self.resource}`"
            message = f"{request}, but the nodes have {self.most}"
        return f"{message}{_files_of_nodes(self.at.view)}, so some pods stay Pending"

    def fix(self, setting: str = "") -> str:
        """Return the fix. `setting` is a field to change with the number of pods, such as ` with minAvailable 3`."""
        fewer = "fewer pods" if self.resource else counted(self.most, "pod")
        return f"run {fewer}{setting}, or add nodes"

    @property
    def path(self) -> str:
        """Return the path of the template."""
        return path_as_text(self.at.pods.podset.path)


def _check_all_pods(pods: Sequence[PodsAndNodes], subject: Subject) -> Iterator[Problem]:
    """Report pods that start together, if all nodes together have too few devices for them. If no pods start together,
    report too few devices for pods of kinds other than jobs. Pods of jobs may run one after another.
    """
    if together := _shortage(pods, pods_that_start_together(pods, subject)):
        spec = subject.typed(Job).spec if subject.group_kind == _VOLCANO_JOB else None
        has_least = spec is not None and spec.min_available and len(spec.tasks) == 1
        setting = f" with minAvailable {together.most}" if has_least else ""
        yield ALL_PODS.problem(together.path, together.all_pods, together.fix(setting))
    elif subject.group_kind in PLACED - BATCH and (some := _shortage(pods, [each.pods.pod_count for each in pods])):
        yield SOME_PODS.problem(some.path, some.some_pods, some.fix())


def pods_that_start_together(pods: Sequence[PodsAndNodes], subject: Subject) -> list[int]:
    """Return for each template how many of its pods can only work together: all pods of a gang or of a training, or
    the pods of one group; [] if pods work alone.
    """
    kind = subject.group_kind
    if kind == _VOLCANO_JOB:
        return _gang_of_volcano(pods, subject)
    if kind in _IN_GROUPS:
        return [each.pods.podset.count or 0 for each in pods]
    is_gang = kind == TRAIN_JOB and _trains_together(subject)
    is_gang |= kind[0] == _TRAINING_OPERATOR and not _spec_of_object(subject).get("elasticPolicy")
    is_gang |= kind[0] == _RAY and _has_gang_of_ray(subject)
    is_gang |= any(each.needs.spec.scheduler_name == _KAI for each in pods) and _has_gang_of_kai(subject)
    return [each.pods.pod_count for each in pods] if is_gang else []


def _spec_of_object(subject: Subject) -> Mapping[str, JSON]:
    spec: Mapping[str, JSON] = subject.object.get("spec") or {}
    return spec


def _gang_of_volcano(pods: Sequence[PodsAndNodes], subject: Subject) -> list[int]:
    """Return how many pods of each task of a Volcano Job start together: minAvailable if the job has one task, and all
    pods if minAvailable is the number of all pods. Otherwise the numbers are not known, and the result is [].
    """
    spec = subject.typed(Job).spec
    least = min(spec.min_available or spec.needed_pod_count, spec.pod_count)
    if len(spec.tasks) == 1:
        return [least]
    return [each.pods.pod_count for each in pods] if least == spec.pod_count else []


def _trains_together(subject: Subject) -> bool:
    """Return whether the pods of a TrainJob are a gang, or nodes of a training that is not elastic."""
    job = subject.once(merge_train_job)
    is_elastic = bool(job.runtime.spec.ml_policy.torch.elastic_policy)
    return bool(job.scheduler) or (bool(job.plugin) and not is_elastic)


def _has_gang_of_ray(subject: Subject) -> bool:
    """Return whether KubeRay gives the pods of a Ray cluster to a gang scheduler, without an autoscaler."""
    spec = _spec_of_object(subject)
    inner = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
    labels = subject.metadata.labels
    is_autoscaled = bool(inner.get("enableInTreeAutoscaling"))
    return not is_autoscaled and (_RAY_GANG in labels or labels.get(_RAY_SCHEDULER, "") in _GANG_SCHEDULERS)


def _has_gang_of_kai(subject: Subject) -> bool:
    """Return whether an object is a JobSet with pods that KAI starts together. If the jobs have an order, KAI starts
    the jobs one by one.
    """
    spec = _spec_of_object(subject)
    has_order = "startupPolicy" in spec or any("dependsOn" in each for each in spec.get("replicatedJobs") or ())
    return subject.group_kind == JOB_SET and not has_order


def _shortage(pods: Sequence[PodsAndNodes], counts: Sequence[int]) -> Shortage | None:
    """Return the shortage of devices for pods that run at the same time; None without a shortage, or if nodes may be
    added.

    The pods of each template are compared first, then the pods of all templates together. `counts` has the number of
    pods of each template; [] if no pods run at the same time.
    """
    if len(counts) != len(pods) or any((new := judge_new_nodes(each)) and new.source for each in pods):
        return None
    for each, count in zip(pods, counts, strict=True):
        most = _sum_up_to(count, (each.needs.pods_on(offer) for offer in each.offers if each.needs.fits(offer)))
        if each.needs.devices and count > most:
            return Shortage(each, count, most)
    for name in dict.fromkeys(name for each in pods[1:] for name in each.needs.devices):
        wanted = sum(count * each.needs.devices.get(name, 0) for each, count in zip(pods, counts, strict=True))
        using = [each.needs for each in pods if name in each.needs.devices]
        fitting = (offer for offer in pods[0].offers if any(needs.fits(offer) for needs in using))
        most = _sum_up_to(wanted, (offer.amounts.get(name, 0) for offer in fitting))
        if wanted > most:
            return Shortage(pods[0], wanted, most, name)
    return None


def _sum_up_to(enough: int, amounts: Iterable[int]) -> int:
    """Return the sum of amounts. Stop when the sum reaches `enough`, because a cluster may have thousands of nodes."""
    total = 0
    for amount in amounts:
        total += amount
        if total >= enough:
            break
    return total


def _problem_of_open_nodes(problem: Problem, each: PodsAndNodes, source: str) -> Problem:
    """Return the problem as not checked, because the cluster may get nodes that fit."""
    amounts = " and ".join(f"{count} {name}" for name, count in each.needs.devices.items())
    suffix = _PROPERTY_OF_RULE.get(problem.code.partition("/")[2], "")
    amounts = amounts or suffix.removeprefix(" with ")
    suffix = "" if amounts in suffix else suffix
    what, why = f"no current node has {amounts}{suffix},", f"and {source} may add a matching node"
    missing = MissingObject(kind=what, name="", why=why, is_absent=False)
    return Problem(code=problem.code, path=problem.path, missing=(missing,))


def _problems_of_pods(each: PodsAndNodes) -> Iterator[Problem]:
    """Report the resources that all nodes lack. If there are no such resources, report the requirements that no single
    node meets together.
    """
    lacking = [*_check_devices(each)]
    if lacking:
        yield from lacking
    elif not any(map(each.needs.has_amounts, each.offers)):
        yield _cpu_and_memory_problem(each)
    else:
        yield _placement_problem(each)


def _check_devices(each: PodsAndNodes) -> Iterator[Problem]:
    at = path_as_text(each.pods.podset.path)
    files = _files_of_nodes(each.view)
    largest = largest_amounts(IdentityKey(each.view.list_visible_json(Node.gvk)))
    for name, count in each.needs.devices.items():
        most, default = largest.get(name, 0), _defaults_as_text(each.needs, (name,))
        if not most:
            message = (
                f"requests `{name}`{default}, which no node of the cluster has now{files}, so the pods wait for a node "
                "with this resource"
            )
            yield OFFERED.problem(at, message, fix_for_resource(name, each.offers))
        elif count > most:
            has = f"the largest node has {most}{files}"
            message = f"requests {count} `{name}`{default} for one pod, but {has}, so no node fits"
            fix = f"request at most {most} for each pod, and use more pods"
            if default:
                fix = f"set a limit of {name} for each container, so that the pod has at most {most}"
            yield LARGEST_NODE.problem(at, message, fix)


def _cpu_and_memory_problem(each: PodsAndNodes) -> Problem:
    """Return the problem of pods that request more CPUs or memory than the nodes with the devices have. If no node has
    all of the devices, return this problem instead.
    """
    wanted, needs = each.needs.ordinary, each.needs
    fitting = [offer for offer in each.offers if needs.has_devices(offer)]
    if not fitting:
        message = f"requests {_devices_as_text(needs)} for one pod, but no node has all of these, so no node fits"
        return _together_problem(each, message)
    most = {name: max((offer.amounts.get(name, 0) for offer in fitting), default=0) for name in wanted}
    above = [name for name, amount in wanted.items() if amount > most[name]] or list(wanted)
    listed = " and ".join(format_amount_with_resource_name(name, wanted[name]) for name in above)
    default = _defaults_as_text(needs, above)
    had = " and ".join(format_amount_with_resource_name(name, most[name]) for name in above)
    message = (
        f"requests {listed}{default} together with {_devices_as_text(needs)} for one pod, but nodes with these devices "
        f"have at most {had}"
    )
    if not needs.devices:
        message = f"requests {listed}{default} for one pod, but nodes have at most {had}"
    together = f"{', on different nodes' if len(above) > 1 else ''}{_files_of_nodes(each.view)}"
    fix = "request less for each pod, or use more pods with fewer devices"
    if default:
        fix = f"set a smaller request and limit of {' and '.join(above)} for each container"
    if not any(most[name] for name in above):
        fix = f"add nodes with {' and '.join(above)}, or remove the request"
    return CPU_AND_MEMORY.problem(path_as_text(each.pods.podset.path), f"{message}{together}, so no node fits", fix)


def _defaults_as_text(needs: PodNeeds, names: Iterable[str]) -> str:
    """Return a part of a message, which says that a LimitRange sets or raises one of the amounts; "" if the object sets
    all of these amounts.
    """
    return "" if needs.defaulted.isdisjoint(names) else ", with the defaults of a LimitRange of the namespace,"


def _devices_as_text(needs: PodNeeds) -> str:
    return " and ".join(f"{count} `{name}`" for name, count in needs.devices.items())


def _placement_problem(each: PodsAndNodes) -> Problem:
    """Return the problem of labels, of taints, or of devices that the selected nodes lack."""
    needs, files = each.needs, _files_of_nodes(each.view)
    selected = [offer for offer in each.offers if needs.has_labels(offer)]
    if not selected:
        return _labels_problem(each, files)
    tolerated = [offer for offer in selected if needs.tolerates_taints(offer)]
    with_amounts = [offer for offer in selected if needs.has_amounts(offer)]
    if with_amounts:
        offer = with_amounts[0]
        taint = needs.first_taint(offer)
        shown = "" if taint is None else f"{taint.key}{'=' * bool(taint.value)}{taint.value}:{taint.effect}"
        others = f"no other node has {_devices_as_text(needs) or 'what the pod needs'}"
        if with_amounts[1:]:
            others = f"{counted(len(with_amounts) - 1, 'other node')} cannot take the pod because of taints either"
        message = f"does not tolerate the taint `{shown}` of node {offer.name}{files}, and {others}, so no node fits"
        return TAINTS.problem(each.pods.locate(needs.spec.at), message, f"add a toleration for `{shown}`")
    offer = (tolerated or selected)[0]
    requested = _devices_as_text(needs)
    had = " and ".join(f"{offer.amounts.get(name, 0)} `{name}`" for name in needs.devices)
    if needs.has_devices(offer):
        above = [name for name, amount in needs.ordinary.items() if offer.amounts.get(name, amount) < amount]
        requested = " and ".join(format_amount_with_resource_name(name, needs.ordinary[name]) for name in above)
        had = " and ".join(format_amount_with_resource_name(name, offer.amounts[name]) for name in above)
    less = f"but the nodes that it selects have less{files} (node {offer.name} has {had})"
    return _together_problem(each, f"requests {requested} for one pod, {less}")


def _together_problem(each: PodsAndNodes, message: str) -> Problem:
    fix = "select nodes with the requested devices, or request what the selected nodes have"
    return TOGETHER.problem(path_as_text(each.pods.podset.path), message, fix)


def _labels_problem(each: PodsAndNodes, files: str) -> Problem:
    """Return the problem of the first label that no node has, or of labels that no node has together."""
    spec = each.needs.spec
    for key, value in spec.node_selector.items():
        if not any(offer.labels.get(key) == value for offer in each.offers):
            others = dict.fromkeys(offer.labels[key] for offer in each.offers if key in offer.labels)
            path = each.pods.locate(spec.path("nodeSelector", key))
            if f"{value}{SHARED_SUFFIX}" in others:
                message = (
                    f"selects `{key}={value}`, which no node has{files}, because nodes with shared GPUs are labelled "
                    f"`{value}{SHARED_SUFFIX}`"
                )
                return LABELS.problem(path, message, f"select `{value}{SHARED_SUFFIX}`, or no product")
            known = f"; nodes have {_first_values(others)}" if others else ""
            near = _first_values(others) if len(others) == 1 else ""
            fix = f"select {near}, or label a node" if near else "select a label that nodes have, or label a node"
            return LABELS.problem(path, f"selects `{key}={value}`, which no node has{known}{files}", fix)
    field = "affinity" if spec.affinity.node_affinity.required else "nodeSelector"
    if shared := _shared_product_of_affinity(each):
        key, value = shared
        message = f"requires `{key}={value}`, which no node has{files}, because nodes with shared GPUs are labelled "
        message += f"`{value}{SHARED_SUFFIX}`"
        fix = f"require `{value}{SHARED_SUFFIX}`, or no product"
        return LABELS.problem(each.pods.locate(spec.path(field)), message, fix)
    path = each.pods.locate(spec.path(field))
    if (lacking := _unmet_requirement(each)) is not None:
        others = dict.fromkeys(offer.labels[lacking.key] for offer in each.offers if lacking.key in offer.labels)
        known = f"; nodes have {_first_values(others)}" if others else ""
        message = f"requires `{lacking.in_words}`, which no node meets{known}{files}"
        return LABELS.problem(path, message, "require a label that nodes have, or label a node")
    listed = [wanted.in_words for wanted in next(requirements_of_pod(each.needs), ())]
    message = f"requires {_first_values(listed)}, which no node has together{files}, so no node fits"
    return LABELS.problem(path, message, "require labels that one node has")


def _unmet_requirement(each: PodsAndNodes) -> Requirement | None:
    """Return the first requirement of affinity that no node meets; None if one term has no such requirement."""
    first = None
    for term in each.needs.spec.required_node_terms():
        unmet = (
            wanted
            for wanted in term.match_expressions
            if not any(labels_meet_requirement(offer.labels, wanted) for offer in each.offers)
        )
        lacking = next(unmet, None)
        if lacking is None:
            return None
        first = first or read_requirement(lacking)
    return first


def _shared_product_of_affinity(each: PodsAndNodes) -> tuple[str, str] | None:
    """Return a label and a value of required affinity that nodes have only with the suffix for shared GPUs."""
    for term in each.needs.spec.required_node_terms():
        for wanted in term.match_expressions:
            known = {offer.labels.get(wanted.key, "") for offer in each.offers}
            for value in wanted.values if wanted.operator == "In" and known.isdisjoint(wanted.values) else ():
                if f"{value}{SHARED_SUFFIX}" in known:
                    return wanted.key, value
    return None


def _first_values(values: Iterable[str]) -> str:
    listed = list(values)
    return ", ".join(f"`{each}`" for each in listed[:_MOST_VALUES]) + ", …" * (len(listed) > _MOST_VALUES)


def _files_of_nodes(view: ClusterView) -> str:
    """Return the files with the counted nodes, for messages; "" for nodes of a live cluster."""
    origins = view.files_of_objects_as_text(view.list_visible_json(Node.gvk))
    return f" (nodes{origins})" if origins else ""


def fix_for_resource(name: str, offers: Sequence[NodeOffer]) -> str:
    """Return the fix for a resource that no node has. If a node offers the device under another name, the fix has this
    name.
    """
    offered = next(_names_offered_instead(name, offers), None)
    invalid = next((offer for offer in offers if offer.labels.get(_PRODUCT, "").endswith(_INVALID)), None)
    if offered is None and name == _GPU and invalid is not None:
        return f"divide the GPUs of node {invalid.name} into slices of one profile, because its MIG strategy is single"
    if offered is None:
        return "add nodes with this resource, or request a resource that the cluster has"
    offer, instead, reason = offered
    return f"request `{instead}`, which node {offer.name} offers{reason}, or add nodes with `{name}`"


def _names_offered_instead(name: str, offers: Sequence[NodeOffer]) -> Iterator[tuple[NodeOffer, str, str]]:
    """Yield nodes that offer a device under another name, with this name and the reason."""
    for offer in offers:
        strategy = offer.labels.get(_STRATEGY, "")
        if offer.amounts.get(f"{name}{_SHARED}"):
            yield offer, f"{name}{_SHARED}", " because it shares GPUs under this name"
        elif name.endswith(_SHARED) and offer.amounts.get(name.removesuffix(_SHARED)):
            yield offer, name.removesuffix(_SHARED), ""
        elif name == _GPU and (slices := _names_of_offered_resources(offer, _SLICE)):
            yield offer, slices[0], f" because its MIG strategy is {strategy}" if strategy else ""
        elif name.startswith(_SLICE) and offer.amounts.get(_GPU) and strategy == "single":
            yield offer, _GPU, " for each slice because its MIG strategy is single"
        elif name.startswith(_SLICE) and (slices := _names_of_offered_resources(offer, _SLICE)):
            yield offer, slices[0], ""
        elif name == "amd.com/gpu" and offer.amounts.get(f"amd.com/{offer.labels.get(_PARTITION)}"):
            yield offer, f"amd.com/{offer.labels[_PARTITION]}", " for each partition"
        elif _AMD_PARTITION.fullmatch(name) and offer.amounts.get("amd.com/gpu"):
            yield offer, "amd.com/gpu", " for each partition"
        elif name == "aws.amazon.com/neurondevice" and offer.amounts.get(f"{_NEURON}neuron"):
            yield offer, f"{_NEURON}neuron", " in place of the older name"
    domain, device = name.rpartition("/")[0], device_of_resource_name(name)
    for offer in offers:
        for other in _names_of_offered_resources(offer, f"{domain}/"):
            row = device_of_resource_name(other)
            if row.gpu == device.gpu and (row.kind == _MONITOR) == (device.kind == _MONITOR):
                yield offer, other, ""


def _names_of_offered_resources(offer: NodeOffer, prefix: str) -> list[str]:
    return sorted(name for name, count in offer.amounts.items() if count and name.startswith(prefix))
