"""What updates, drains and autoscalers need: devices for one more pod, budgets that allow an eviction, enough nodes.

An update that starts a new pod before it removes an old pod never ends if no node has devices for the new pod. The
check assumes that pods of other workloads use no devices of the nodes. If an autoscaler may add nodes, nothing is
reported. If the view may lack nodes, the problem is advice. A PodDisruptionBudget may forbid every eviction, and a pod
autoscaler may create more pods than the nodes have devices for.

Source: k8s.io/kubernetes v1.36 pkg/controller/deployment/util ResolveFenceposts, pkg/controller/disruption and
pkg/controller/podautoscaler; kubernetes-sigs/lws@060ab4d pkg/controllers/leaderworkerset_controller.go;
ray-project/kuberay@feeaf72f ray-operator/controllers/ray.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.packed import charge_for_objects
from webhook.facts.gpu.device_pods import read_device_workload
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.nodes.node_offers import (
    CLASS_LOOKUPS,
    NODE_LOOKUPS,
    PodNeeds,
    PodsAndNodes,
    known_offers,
    needs_of_pod,
    pods_and_listed_nodes,
)
from webhook.facts.nodes.node_pools import NODE_POOL_LOOKUPS, judge_new_nodes
from webhook.facts.pods.node_selection import is_selected
from webhook.facts.pods.node_sources import first_node_without_amounts, source_of_new_nodes
from webhook.facts.subject import Check, Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule, RuleGroup
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.autoscaling import HorizontalPodAutoscaler, ScaledObject, ScaledObjectSpec
from webhook.typed.cluster_objects import (
    Deployment,
    DeploymentStrategy,
    LimitRange,
    Node,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    RollingUpdate,
    Rollout,
)
from webhook.typed.pods import Container
from webhook.typed.ray import RayService
from webhook.typed.serving import InferenceService
from webhook.typed.view import ReadingContext
from webhook.typed.worker_sets import LeaderWorkerSet

UPDATE: Final = RuleGroup(
    "update",
    source="k8s.io/kubernetes v1.36 pkg/controller/deployment/util/deployment_util.go",
    level="warn",
    fails="disruption",
)
"""What an update, a drain or an autoscaler needs in addition to the current pods."""
NO_SPARE: Final = UPDATE.rule(
    "update/no-spare-devices",
    title="A rolling update needs a free device, but the old pods use all devices",
    why="The update starts a new pod before it removes an old pod, so the new pod waits for ever.",
    function="ResolveFenceposts",
)
MAY_LACK_SPARE: Final = UPDATE.rule(
    "update/may-lack-spare-devices",
    title="A rolling update needs a free device, but the old pods use all devices of the listed nodes",
    why="The update starts a new pod before it removes an old pod. A node that is not listed may have the device.",
    function="ResolveFenceposts",
    level="advice",
)
BUDGET: Final = UPDATE.rule(
    "update/budget-forbids-evictions",
    title="A PodDisruptionBudget forbids every eviction",
    why="A drain of the node waits for ever, so nodes are not upgraded.",
    source="k8s.io/kubernetes v1.36 pkg/controller/disruption/disruption.go",
    level="advice",
)
SCALING: Final = UPDATE.rule(
    "update/autoscaler-above-nodes",
    title="An autoscaler may create more pods than the nodes have devices for",
    why="The additional pods stay Pending, and the autoscaler still counts them.",
    fails="pending",
    source="k8s.io/kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go",
    level="advice",
)
SCALED_BY_SHARE: Final = UPDATE.rule(
    "update/scaled-by-unset-request",
    title="A ScaledObject counts CPU or memory that a container does not request",
    why="A share of a request cannot be computed without the request, so this trigger never acts.",
    refused_by="KEDA's webhook, or the autoscaler in its conditions",
    source="kedacore/keda apis/keda/v1alpha1/scaledobject_webhook.go",
    function="verifyCPUMemoryScalers",
    fails="silent",
)
SCALED_TWICE: Final = UPDATE.rule(
    "update/scaled-twice",
    title="A HorizontalPodAutoscaler already scales the workload of a ScaledObject",
    why="KEDA refuses the ScaledObject, or the two autoscalers repeatedly overwrite each other's number of pods.",
    refused_by="KEDA's webhook",
    source="kedacore/keda apis/keda/v1alpha1/scaledobject_webhook.go",
    function="verifyHpas",
    fails="create",
)
SCALED_TO_ZERO: Final = UPDATE.rule(
    "update/scaled-to-zero",
    title="A ScaledObject with only CPU or memory triggers has minReplicaCount 0",
    why=(
        "Without pods there is no CPU or memory to count. So KEDA 2.11 and later refuse a minimum of 0, the default. "
        "Earlier releases keep one pod."
    ),
    refused_by="KEDA's webhook",
    source="kedacore/keda@02c2bdce apis/keda/v1alpha1/scaledobject_webhook.go; CHANGELOG of 2.11.0",
    function="verifyCPUMemoryScalers",
    fails="create",
)
_POD_TRIGGERS: Final = frozenset(("cpu", "memory"))
"""The triggers of KEDA that measure what the pods themselves use. Without pods, these triggers measure nothing."""
_OWNERSHIP_ANNOTATIONS: Final = ("validations.keda.sh/hpa-ownership", "scaledobject.keda.sh/transfer-hpa-ownership")
"""Annotations of a ScaledObject that allow another HorizontalPodAutoscaler for the same workload. The value of the
first annotation must be false.
"""
_NEW_CLUSTER: Final = "NewCluster"
_NO_UPGRADE: Final = "None"
_MODE_ANNOTATION: Final = "serving.kserve.io/deploymentMode"
_STANDARD_MODES: Final = ("Standard", "RawDeployment")
"""The mode in which KServe creates a Deployment, and the old name of this mode."""
_KUBERAY: Final = "kuberay/operator"
_ZERO_DOWNTIME: Final = "ENABLE_ZERO_DOWNTIME"
_PERCENT: Final = re.compile("([0-9]{1,4})%", re.ASCII)
_DEFAULT: Final = "25%"
_HUNDRED: Final = 100
_SCALED_KINDS: Final = {"Deployment": Deployment.gvk, "StatefulSet": GroupVersionKind("apps", "v1", "StatefulSet")}
"""The kinds that autoscalers scale and that this module checks (commands/audit_index.py keeps these in audits)."""
_KEDA_DEFAULT_MAXIMUM: Final = 100
"""The default of maxReplicaCount: kedacore/keda apis/keda/v1alpha1/scaledobject_types.go defaultHPAMaxReplicas."""
_AUTOSCALER_CLASS: Final = "serving.kserve.io/autoscalerClass"
_NO_AUTOSCALER: Final = ("none", "external")
"""Classes for which KServe creates no autoscaler."""
SCALED_LOOKUPS: Final = (
    *(interest_in_fields(kind, "spec.replicas", "spec.template") for kind in (*_SCALED_KINDS.values(), Rollout.gvk)),
    interest_in_fields(LeaderWorkerSet.gvk, "spec.leaderWorkerTemplate"),
    interest_in_fields(HorizontalPodAutoscaler.gvk, "spec.scaleTargetRef"),
)
"""The look-ups of audits. A server does not look these kinds up: a cluster has many objects of these kinds, and a
server never shows the advice.
"""


def check_updates(subject: Subject) -> Iterator[Problem]:
    """Report a workload if its next update would never end."""
    compared = [each for each in subject.once(pods_and_listed_nodes) if each.needs.devices]
    if subject.group_kind == (RayService.gvk.group, RayService.gvk.kind):
        yield from _check_ray_service(compared, subject)
        return
    if subject.group_kind == LEADER_WORKER_SET:
        yield from _check_groups(compared, subject)
        return
    if len(compared) != 1 or len(subject.once(read_device_workload).pod_sets) != 1:
        return
    [each] = compared
    if each.fits_a_node and judge_new_nodes(each) is None:
        yield from _CHECK_OF_KIND[subject.group_kind](each, subject)


def _check_deployment(each: PodsAndNodes, subject: Subject) -> Iterator[Problem]:
    spec = subject.typed(Deployment).spec
    if not spec.is_omitted("replicas"):
        fix = "set maxSurge 0 and maxUnavailable 1, or strategy Recreate"
        yield from _check_strategy(each, spec.strategy, spec.replicas, fix)


def _check_inference_service(each: PodsAndNodes, subject: Subject) -> Iterator[Problem]:
    """Report a predictor that KServe runs as a Deployment, if its update would never end.

    Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/deployment
    setDefaultDeploymentSpec.
    """
    service = subject.typed(InferenceService)
    mode = service.status.deployment_mode or service.metadata.annotations.get(_MODE_ANNOTATION, "")
    predictor = service.spec.predictor
    if mode in _STANDARD_MODES and each.pods.podset.path == predictor.at and not predictor.is_omitted("minReplicas"):
        fix = "in deploymentStrategy, set maxSurge 0 and maxUnavailable 1, or type Recreate"
        yield from _check_strategy(each, predictor.deployment_strategy, predictor.min_replicas, fix)


def _check_strategy(
    each: PodsAndNodes, strategy: DeploymentStrategy, written: int | None, fix: str
) -> Iterator[Problem]:
    """Report a rolling update that would never end. `written` is the number of replicas; None for the default of 1."""
    replicas = 1 if written is None else written
    if strategy.type in ("", "RollingUpdate") and _adds_before_it_removes(strategy.rolling_update, replicas):
        yield from _check_spare(each, replicas, "pod", 1, fix)


def _adds_before_it_removes(settings: RollingUpdate, replicas: int) -> bool:
    """Return whether an update must wait for a new pod before it removes an old pod."""
    surge = amount_of_replicas(settings.max_surge, replicas, is_rounded_up=True)
    unavailable = amount_of_replicas(settings.max_unavailable, replicas, is_rounded_up=False)
    return replicas >= 1 and unavailable == 0 and bool(surge)


def _check_rollout(each: PodsAndNodes, subject: Subject) -> Iterator[Problem]:
    """Report a Rollout if its update would never end. A canary without traffic routing updates like a Deployment. With
    traffic routing, a canary adds pods while all old pods stay. blueGreen doubles the number of pods.

    Source: argoproj/argo-rollouts@03055326 utils/defaults/defaults.go, utils/replicaset/canary.go and
    rollout/bluegreen.go.
    """
    spec = subject.typed(Rollout).spec
    replicas = 1 if spec.replicas is None else spec.replicas
    if spec.is_omitted("replicas") or replicas < 1 or spec.has("workloadRef"):
        return
    fix = "use a canary with maxSurge 0 and maxUnavailable 1, and without trafficRouting"
    if spec.strategy.has("blueGreen"):
        yield from _check_spare(each, replicas, "pod", 1, fix, added=replicas)
    elif spec.strategy.canary and (
        spec.strategy.canary.has("trafficRouting") or _adds_before_it_removes(spec.strategy.canary, replicas)
    ):
        yield from _check_spare(each, replicas, "pod", 1, fix)


def _check_groups(compared: Sequence[PodsAndNodes], subject: Subject) -> Iterator[Problem]:
    """Report a LeaderWorkerSet if its update would never end: maxSurge adds a group, and maxUnavailable does not let
    any group end.

    Leaders and workers that need the same devices and fit the same nodes are counted together. Otherwise only the
    workers are counted.
    """
    spec = subject.typed(LeaderWorkerSet).spec
    settings, replicas = spec.rollout_strategy.rolling_update_configuration, spec.replicas
    if not compared or replicas < 1 or settings.max_surge is None or settings.max_unavailable is None:
        return
    each = compared[-1]
    alike = [other for other in compared if other.needs.devices == each.needs.devices and other.fitting == each.fitting]
    if not all(other.pods.podset.count and other.fits_a_node for other in alike) or judge_new_nodes(each) is not None:
        return
    if amount_of_replicas(settings.max_unavailable, replicas, is_rounded_up=False) == 0 and amount_of_replicas(
        settings.max_surge, replicas, is_rounded_up=True
    ):
        pods = sum(other.pods.podset.count or 0 for other in alike)
        yield from _check_spare(each, replicas, "group", pods, "set maxUnavailable 1 and maxSurge 0")


def _check_ray_service(compared: Sequence[PodsAndNodes], subject: Subject) -> Iterator[Problem]:
    """Report the first group of a RayService that lacks devices during an update. An update starts a second Ray
    cluster before it stops the first cluster.
    """
    spec = subject.typed(RayService).spec
    strategy = spec.upgrade_strategy.type
    is_replaced = strategy == _NEW_CLUSTER or (
        not strategy and not _updates_without_second_cluster(subject.cluster_view())
    )
    if not is_replaced or spec.ray_cluster_config.enable_in_tree_autoscaling:
        return
    for each in compared:
        pods = each.pods.pod_count
        capacity = sum(each.needs.pods_on(offer) for offer in each.fitting)
        if pods and pods <= capacity < 2 * pods and judge_new_nodes(each) is None:
            devices = " and ".join(f"{count} `{name}`" for name, count in each.needs.devices.items())
            starts = f"a changed rayClusterConfig starts a second cluster with {counted(pods, 'pod')} of {devices}"
            fix = f"set upgradeStrategy.type {_NO_UPGRADE}, or ask the administrator to add nodes"
            yield _problem_of_spare(each, f"{starts} before KubeRay stops the first cluster", capacity, fix)
            return


def _updates_without_second_cluster(view: ClusterView) -> bool:
    """Return whether KubeRay's Deployment in the view sets ENABLE_ZERO_DOWNTIME to false. Updates then start no second
    cluster.
    """
    containers = (
        container
        for deployment in view.copy_without_missing_objects().list_typed(Deployment)
        for container in deployment.spec.template.spec.containers
        if _KUBERAY in container.image
    )
    return any((each.environment.by_name().get(_ZERO_DOWNTIME) or "").lower() == "false" for each in containers)


def _check_spare(
    each: PodsAndNodes, replicas: int, what: str, pods_of_one: int, fix: str, *, added: int = 1
) -> Iterator[Problem]:
    """Report an update that adds pods or groups, if the nodes do not have devices for both old and new pods."""
    capacity = sum(each.needs.pods_on(offer) for offer in each.fitting)
    if capacity < (replicas + added) * pods_of_one:
        devices = " and ".join(f"{count} `{name}`" for name, count in each.needs.devices.items())
        more = f"one more {what}" if added == 1 else f"{added} more {what}s"
        starts = f"{'a surge' if what == 'group' else 'an update'} starts {more} ({devices} for each pod)"
        yield _problem_of_spare(each, f"{starts} and keeps {counted(replicas, f'old {what}')}", capacity, fix)


def _problem_of_spare(each: PodsAndNodes, starts: str, capacity: int, fix: str) -> Problem:
    """Return the problem of an update that starts more pods than the nodes have devices for."""
    at, is_whole = each.pods.locate(each.needs.spec.at), each.view.is_whole(Node.gvk)
    nodes = "nodes" if is_whole else "listed nodes"
    message = f"{starts}, but the {nodes} have room for {counted(capacity, 'pod')}"
    if is_whole:
        return NO_SPARE.problem(at, f"{message}, so the update never ends", fix)
    return MAY_LACK_SPARE.problem(at, f"{message}, so the update may never end", fix)


_CHECK_OF_KIND: Final[Mapping[tuple[str, str], Callable[[PodsAndNodes, Subject], Iterator[Problem]]]] = {
    ("apps", "Deployment"): _check_deployment,
    ("argoproj.io", "Rollout"): _check_rollout,
    ("serving.kserve.io", "InferenceService"): _check_inference_service,
}
"""The checks of kinds with one pod template."""


def amount_of_replicas(written: JSON, replicas: int, *, is_rounded_up: bool) -> int | None:
    """Return the number of replicas that a value means: a number, or a percentage of `replicas`. The value null means
    25 %. Return None for any other value.
    """
    if isinstance(written, int):
        return written
    match = _PERCENT.fullmatch(_DEFAULT if written is None else written) if isinstance(written, str | None) else None
    if match is None:
        return None
    parts = int(match[1]) * replicas
    return -(-parts // _HUNDRED) if is_rounded_up else parts // _HUNDRED


def check_budget(subject: Subject) -> Iterator[Problem]:
    """Report a PodDisruptionBudget that allows no eviction of a Deployment's or a StatefulSet's pods with devices."""
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
            and _allows_no_eviction(spec, replicas)
            and needs_of_pod(template.spec, view).devices
        ):
            pods = counted(replicas, "pod")
            message = f"means that this PodDisruptionBudget allows no eviction of {kind.kind} `{each.name}` ({pods})"
            yield _problem_of_budget(spec, replicas, message)


def _problem_of_budget(spec: PodDisruptionBudgetSpec, replicas: int, message: str) -> Problem:
    """Return the problem of a budget at the field that forbids the evictions."""
    field, written, fix = "maxUnavailable", spec.max_unavailable, "set 1"
    if written is None:
        field, written, fix = "minAvailable", spec.min_available, "replace minAvailable with maxUnavailable: 1"
    larger = range(replicas + 1, replicas + _HUNDRED + 1)
    enough = next((count for count in larger if not _allows_no_eviction(spec, count)), None)
    also = "" if enough is None else f", or run at least {enough} replicas"
    return BUDGET.problem(spec.path(field), message, f"{fix}{also}", written)


def _scaled_objects(view: ClusterView) -> Iterator[tuple[GroupVersionKind, Deployment]]:
    """Yield the Deployments and StatefulSets of the namespace. Objects of both kinds are read with the fields of a
    Deployment.
    """
    for kind in _SCALED_KINDS.values():
        objects = view.copy_without_missing_objects().list_json(kind, view.namespace)
        for obj in charge_for_objects(objects, view.deadline):
            yield kind, Deployment.of(obj, (), ReadingContext(view.deadline))


def _allows_no_eviction(spec: PodDisruptionBudgetSpec, replicas: int) -> bool:
    """Return whether a budget allows no eviction; percentages are rounded up."""
    if spec.max_unavailable is not None:
        return amount_of_replicas(spec.max_unavailable, replicas, is_rounded_up=True) == 0
    if spec.min_available is None:
        return False
    least = amount_of_replicas(spec.min_available, replicas, is_rounded_up=True)
    return least is not None and least >= replicas


class Scaling(NamedTuple):
    """The maximum number of replicas that an autoscaler may create.

    Args:
        most: the maximum number.
        at: the field with this number.
        is_written: whether the field is set; otherwise the number is the default.
        what: `pod`, or `group` for a LeaderWorkerSet.
        parts: what each pod of a replica needs, and how many pods of this kind a replica has.
    """

    most: int
    at: FieldPath
    is_written: bool
    what: str
    parts: tuple[tuple[PodNeeds, int], ...]

    @property
    def devices(self) -> Mapping[str, int]:
        """Return the devices of one replica."""
        counts = Counter[str]()
        for needs, count in self.parts:
            counts.update({name: amount * count for name, amount in needs.devices.items()})
        return counts

    def problem(self, rule: Rule, but: str, replicas: int, other_fix: str) -> Problem:
        """Return the problem of an autoscaler that may create more replicas than `replicas`."""
        value = f"is {self.most}" if self.is_written else f"is not set, so it is {self.most}"
        message = f"{value}, but {but} {replicas} of these {self.what}s"
        return rule.problem(self.at, message, f"set {self.at[-1]} {replicas}, or {other_fix}")


def scaling_of_autoscaler(subject: Subject) -> Scaling | None:
    """Return the maximum of a HorizontalPodAutoscaler, a ScaledObject of KEDA or an InferenceService; None if the
    scaled pods or the maximum are not known. Call this function through `Subject.once`.
    """
    match subject.group_kind:
        case ("autoscaling", _):
            of_pods = subject.typed(HorizontalPodAutoscaler).spec
            kind, name, at = of_pods.scale_target_ref.kind, of_pods.scale_target_ref.name, of_pods.path("maxReplicas")
            most, is_written = of_pods.max_replicas, True
        case ("keda.sh", _):
            scaled = subject.typed(ScaledObject).spec
            kind, name = scaled.scale_target_ref.kind or "Deployment", scaled.scale_target_ref.name
            at, most, is_written = scaled.path("maxReplicaCount"), scaled.max_replica_count, True
            if not (scaled.has("maxReplicaCount") or scaled.is_omitted("maxReplicaCount")):
                most, is_written = _KEDA_DEFAULT_MAXIMUM, False
        case _:
            return _scaling_of_inference_service(subject)
    parts = _parts_of_replica(kind, name, subject.cluster_view())
    what = "group" if kind == LeaderWorkerSet.gvk.kind else "pod"
    return Scaling(most, at, is_written, what, parts) if most and parts else None


def _scaling_of_inference_service(subject: Subject) -> Scaling | None:
    """Return the maximum of the autoscaler that KServe creates for a predictor in Standard mode; None if KServe creates
    no autoscaler, or the pods are not known.

    Source: kserve/kserve@0217bdab pkg/controller/v1beta1/inferenceservice/reconcilers/hpa/hpa_reconciler.go.
    """
    service = subject.typed(InferenceService)
    predictor, annotations = service.spec.predictor, service.metadata.annotations
    mode = service.status.deployment_mode or annotations.get(_MODE_ANNOTATION, "")
    if mode not in _STANDARD_MODES or annotations.get(_AUTOSCALER_CLASS) in _NO_AUTOSCALER:
        return None
    using = [each for each in subject.once(read_device_workload).device_pods if each.podset.path == predictor.at]
    if len(using) != 1 or not predictor.max_replicas or predictor.has("workerSpec"):
        return None
    needs = needs_of_pod(using[0].spec, subject.cluster_view())
    return Scaling(predictor.max_replicas, predictor.path("maxReplicas"), True, "pod", ((needs, 1),))


def _parts_of_replica(kind: str, name: str, view: ClusterView) -> tuple[tuple[PodNeeds, int], ...]:
    """Return the needs and the number of the pods of one replica; () if the replicas are not known."""
    kinds = {**_SCALED_KINDS, Rollout.gvk.kind: Rollout.gvk, LeaderWorkerSet.gvk.kind: LeaderWorkerSet.gvk}
    if kind not in kinds:
        return ()
    reading = ReadingContext(view.deadline)
    scaled = view.get_without_noting(kinds[kind], view.namespace, name)
    if kind != LeaderWorkerSet.gvk.kind:
        return ((needs_of_pod(Deployment.of(scaled, (), reading).spec.template.spec, view), 1),)
    group = LeaderWorkerSet.of(scaled, (), reading).spec.leader_worker_template
    if not group.has_known_size:
        return ()
    of_workers = needs_of_pod(group.worker_template.spec, view)
    if not group.leader_template:
        return ((of_workers, group.size),)
    return ((needs_of_pod(group.leader_template.spec, view), 1), (of_workers, group.size - 1))


def check_autoscaler(subject: Subject) -> Iterator[Problem]:
    """Report an autoscaler with a maximum above the number of replicas that the nodes have devices for."""
    view, scaling = subject.cluster_view(), subject.once(scaling_of_autoscaler)
    nodes = view.list_visible_json(Node.gvk) if view.is_whole(Node.gvk) else ()
    if scaling is None or not scaling.devices or not nodes or source_of_new_nodes(view):
        return
    if first_node_without_amounts(IdentityKey(nodes)):
        return
    offers, using = known_offers(view), [(needs, count) for needs, count in scaling.parts if needs.devices and count]
    of_parts = [sum(needs.pods_on(each) for each in offers if needs.fits(each)) // count for needs, count in using]
    fitting = [each for each in offers if any(needs.fits(each) for needs, _ in using)]
    of_devices = [
        sum(each.amounts.get(name, 0) for each in fitting) // amount for name, amount in scaling.devices.items()
    ]
    capacity = min((*of_parts, *of_devices))
    if 0 < capacity < scaling.most:
        yield scaling.problem(SCALING, "the nodes have devices for", capacity, "ask the administrator to add nodes")


def check_scaled_object(subject: Subject) -> Iterator[Problem]:
    """Report what KEDA refuses in a ScaledObject, and triggers that never act."""
    spec = subject.typed(ScaledObject).spec
    kind = spec.scale_target_ref.kind or "Deployment"
    yield from _check_triggers(subject, spec, kind)
    yield from _check_least(spec, kind)
    yield from _check_other_autoscaler(subject, spec, kind)


def _check_other_autoscaler(subject: Subject, spec: ScaledObjectSpec, kind: str) -> Iterator[Problem]:
    """Report a ScaledObject if a HorizontalPodAutoscaler without an owner scales the same workload. KEDA owns the
    HorizontalPodAutoscalers that KEDA creates.
    """
    target, view = spec.scale_target_ref, subject.cluster_view().copy_without_missing_objects()
    if (
        not target.name
        or not view.namespace
        or any(each in subject.metadata.annotations for each in _OWNERSHIP_ANNOTATIONS)
    ):
        return
    for scaler in view.list_typed(HorizontalPodAutoscaler, view.namespace):
        other = scaler.spec.scale_target_ref
        versions = (each.json.get("apiVersion") or "apps/v1" for each in (target, other))
        is_same = (other.kind, other.name) == (kind, target.name) and len({*versions}) == 1
        if is_same and not scaler.metadata.json.get("ownerReferences"):
            message = f"scales {kind} {target.name}, which HorizontalPodAutoscaler `{scaler.name}` also scales"
            fix = "remove the HorizontalPodAutoscaler, and name its metrics in `triggers`"
            yield SCALED_TWICE.problem(target.at, message, fix)
            return


def _check_least(spec: ScaledObjectSpec, kind: str) -> Iterator[Problem]:
    """Report a minimum of 0 pods if all triggers measure what the pods themselves use. KEDA checks only kinds of group
    apps.
    """
    is_of_apps = (spec.scale_target_ref.json.get("apiVersion") or "apps/v1") == "apps/v1"
    only_of_pods = bool(spec.triggers) and all(each.type in _POD_TRIGGERS for each in spec.triggers)
    if (
        kind in _SCALED_KINDS
        and is_of_apps
        and only_of_pods
        and not (spec.is_omitted("minReplicaCount") or spec.min_replica_count)
    ):
        is_set = spec.has("minReplicaCount")
        message = "is 0" if is_set else "is not set, so it is 0"
        message += ", but all triggers count CPU or memory, so KEDA 2.11 and later refuse the ScaledObject"
        yield SCALED_TO_ZERO.problem(spec.path("minReplicaCount"), message, "set 1 or more, or add another trigger")


def _check_triggers(subject: Subject, spec: ScaledObjectSpec, kind: str) -> Iterator[Problem]:
    """Report a trigger that scales by a share of the requested CPU or memory, if a container does not request the
    resource.
    """
    view, name = subject.cluster_view(), spec.scale_target_ref.name
    if kind not in _SCALED_KINDS or view.has_any(LimitRange.gvk, view.namespace):
        return  # a LimitRange may give containers a request
    scaled = view.get_without_noting(_SCALED_KINDS[kind], view.namespace, name)
    pods = Deployment.of(scaled, (), ReadingContext(view.deadline)).spec.template.spec
    for trigger in spec.triggers:
        resource, container = trigger.resource_and_container
        lacking = next(
            (each for each in pods.containers if _is_counted_without_request(each, resource, container)), None
        )
        if resource and lacking is not None:
            message = f"scales by a share of {resource}, but container `{lacking.name}` of {kind} {name} requests none"
            fix = f"request {resource} in the container, or scale by the server's own metrics"
            yield SCALED_BY_SHARE.problem(trigger.at, message, fix)
            return


def _is_counted_without_request(container: Container, resource: str, name: str) -> bool:
    """Return whether an autoscaler counts a container that does not request the resource. With the name "", the
    autoscaler counts all containers.
    """
    resources = container.resources
    return name in ("", container.name) and resource not in resources.requests and resource not in resources.limits


_NODES: Final = (*NODE_LOOKUPS, *CLASS_LOOKUPS, *NODE_POOL_LOOKUPS)
_UPDATED: Final = frozenset(
    (
        ("apps", "Deployment"),
        LEADER_WORKER_SET,
        ("ray.io", "RayService"),
        ("argoproj.io", "Rollout"),
        ("serving.kserve.io", "InferenceService"),
    )
)
_BUDGETS: Final = frozenset((("policy", "PodDisruptionBudget"),))
SCALED_OBJECTS: Final = frozenset((("keda.sh", "ScaledObject"),))
AUTOSCALERS: Final = SCALED_OBJECTS | {
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("serving.kserve.io", "InferenceService"),
}
"""Kinds that scale pods. KServe creates an autoscaler for an InferenceService."""
_check: Final = partial(Check, group="update", lookups_of_audits=SCALED_LOOKUPS)

CHECKS: Final = (
    Check(group="update", run=check_updates, kinds=_UPDATED, lookups=_NODES, of_made_objects=False),
    _check(run=check_budget, kinds=_BUDGETS),
    _check(run=check_autoscaler, kinds=AUTOSCALERS, lookups=_NODES),
    _check(run=check_scaled_object, kinds=SCALED_OBJECTS, lookups=_NODES),
)
