"""Preemption of pods with devices: by a cloud on spot nodes, or by other pods.

Pods on spot nodes need a toleration for the taint of these nodes, and lose their files when the cloud takes back the
node. spot.yaml has the taints and labels of spot nodes. After a preemption, a job must start again or continue with
fewer workers. Its pods need time to write a checkpoint before they end. The PriorityClasses of a job must exist. Kueue
reads the value of a PriorityClass, but not the preemptionPolicy.

Source: kubernetes-sigs/kueue@ff69552e pkg/util/priority/priority.go GetPriorityFromPriorityClass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.device_failures.types import is_trial
from webhook.facts.gpu.device_pods import (
    BATCH,
    PLACED,
    WORKLOADS,
    DevicePods,
    check_advice_without_repetitions,
    located_templates,
    read_device_workload,
)
from webhook.facts.kinds import NODE, PRIORITY_CLASS
from webhook.facts.kueue.objects import PRIORITY, QUEUE_NAME
from webhook.facts.pods.node_selection import KEEPS_OUT, NODE_POOLS, is_tolerated
from webhook.facts.priority_classes import PriorityClass, priority_class_name
from webhook.facts.subject import Check, Subject
from webhook.facts.view import NAMESPACES
from webhook.facts.volcano_objects.types import Job
from webhook.rules.problem import MissingObject, Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.cluster_objects import Node
from webhook.typed.collections import Items
from webhook.typed.fields import OptionalNumber, Part, PartMap, Text
from webhook.typed.kueue import ClusterQueue, LocalQueue, ResourceFlavor, ResourceFlavorSpec
from webhook.typed.objects import Object
from webhook.typed.pods import Container, LifecycleHandler, NodeSelectorTerm, PodSpec, Taint
from webhook.typed.view import Typed
from webhook.yamltext import yamlfile

PREEMPTION: Final = RuleGroup(
    "preemption",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    level="warn",
    fails="disruption",
)
"""Preemption of pods with devices, by a cloud or by other pods."""
SPOT_TOLERATION: Final = PREEMPTION.rule(
    "preemption/spot-toleration",
    title="The pod selects spot nodes but does not tolerate their taint",
    why="Every spot node has this taint, and a pod without the toleration is never placed there.",
    source="https://learn.microsoft.com/azure/aks/spot-node-pool",
    fails="pending",
)
SPOT_SELECTOR: Final = PREEMPTION.rule(
    "preemption/spot-selector",
    title="The pod tolerates spot nodes but does not select them",
    why=(
        "A toleration only allows spot nodes. Without a node selector the pods may run on other nodes at the full "
        "price. This may be intended if spot nodes are scarce."
    ),
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
    level="advice",
    severity="low",
    fails="silent",
)
SPOT_CHECKPOINT: Final = PREEMPTION.rule(
    "preemption/spot-checkpoint",
    title="A job on spot nodes has no lasting volume",
    why="The cloud may take back a spot node and its disks at any time. The job then starts from the beginning.",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",
)
RESTART: Final = PREEMPTION.rule(
    "preemption/restart",
    title="A job on spot nodes ends at the first preemption",
    why="With restartPolicy Never or backoffLimit 0, the first node that the cloud takes back ends the job.",
    source="kubeflow/trainer@3a3a1da8d528 pkg/controller.v1/common/job.go",
    function="ReconcileJobs",
)
ELASTIC_LIMITS: Final = PREEMPTION.rule(
    "preemption/elastic-limits",
    title="An elastic job on spot nodes cannot shrink",
    why="With minReplicas equal to maxReplicas, all workers wait until a new node exists.",
    source="https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/pytorch/",
)
GRACE_PERIOD: Final = PREEMPTION.rule(
    "preemption/grace-period",
    title="The pod gets too little time to shut down",
    why=(
        "If a preStop hook is as long as the grace period, or if the grace period is 0, SIGTERM comes at most 2 s "
        "before SIGKILL."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination",
)
NEVER_PREEMPTS: Final = PREEMPTION.rule(
    "preemption/never-preempts",
    title="The workload preempts other workloads although its class says Never",
    why=(
        "Kueue compares only the values of priority classes. It preempts workloads of lower value even for a workload "
        "of a class with preemptionPolicy Never."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/util/priority/priority.go",
    function="GetPriorityFromPriorityClass",
)
PREEMPTION_PRIORITY_CLASS: Final = PREEMPTION.rule(
    "preemption/priority-class",
    title="The PriorityClass of the pods does not exist",
    why="The API server refuses the pods of the workload, long after it accepted the workload.",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/priority/admission.go",
    function="admitPod",
    fails="controller",
)
FILE: Final = Path(__file__).with_name("spot.yaml")
_ON_THE_NODE: Final = frozenset(
    ("emptyDir", "hostPath", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image")
)
_OF_PRICE: Final = re.compile("(?i)spot|preempt|provision|capacity|demand")
"""Words in a cluster's own labels for nodes of different prices."""
_BUCKET: Final = re.compile(r"\b(?:s3a?|gs|gcs|abfss?|az|wasbs?|hdfs|hf|oss|obs|cos|swift|minio|dbfs|mlflow)://")
LOOKUPS: Final = (
    interest_in_fields(PRIORITY_CLASS, "preemptionPolicy"),
    interest_in_fields(LocalQueue.gvk, "spec.clusterQueue"),
    interest_in_fields(ClusterQueue.gvk, "spec.preemption"),
    interest_in_fields(ResourceFlavor.gvk, "spec.tolerations"),
)
_NO_PROGRESS: Final = re.compile(r"^\s*(?:sleep|nvidia-smi|rocm-smi)\b[^;&|\n]*\n*$")
"""A command that makes no progress, as the only command."""
_SAMPLE: Final = re.compile(r"/cuda-sample:|vector-?add")
"""A part of the names of images with samples of CUDA."""
_DEFAULT_GRACE_S: Final = 30
_SLEEP: Final = re.compile(r"\bsleep\s+([0-9]{1,6})([smh]?)(?![\w.])")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


class TrainingJobRole(Typed):
    """kubeflow.org ReplicaSpec."""

    restart_policy = Text()


class RunPolicy(Typed):
    """kubeflow.org RunPolicy."""

    backoff_limit = OptionalNumber()


class ElasticPolicy(Typed):
    """kubeflow.org ElasticPolicy."""

    min_replicas = OptionalNumber()
    max_replicas = OptionalNumber()


class TrainingJobSpec(Typed):
    """The spec of any kind of job of the Training Operator."""

    elastic_policy = Part(ElasticPolicy)
    run_policy = Part(RunPolicy)
    jax_replica_specs = PartMap(TrainingJobRole)
    paddle_replica_specs = PartMap(TrainingJobRole)
    pytorch_replica_specs = PartMap(TrainingJobRole)
    tf_replica_specs = PartMap(TrainingJobRole)
    xgb_replica_specs = PartMap(TrainingJobRole)

    def roles(self) -> Iterator[TrainingJobRole]:
        """Yield the roles of a job that is not an MPIJob."""
        yield from self.jax_replica_specs.values()
        yield from self.paddle_replica_specs.values()
        yield from self.pytorch_replica_specs.values()
        yield from self.tf_replica_specs.values()
        yield from self.xgb_replica_specs.values()


class TrainingOperatorJob(Object):
    """A job of the Training Operator, of any kind."""

    spec = Part(TrainingJobSpec)


class SpotNodeRow(Struct, frozen=True):
    """One row of spot.yaml: the label of a cloud's spot nodes, and who adds a taint with the same key and value.

    `tainted_by` is `cloud` (on all spot nodes), `site` (administrators may add the taint) or `none`.
    """

    cloud: str
    key: str
    value: str
    tainted_by: str


@cache
def _label_keys_of_spot_nodes() -> frozenset[str]:
    return frozenset(each.key for each in read_spot_nodes())


@cache
def read_spot_nodes() -> tuple[SpotNodeRow, ...]:
    """Return the rows of spot.yaml, which is read on first use."""
    (document,) = yamlfile.read(FILE)
    return tuple(SpotNodeRow(**row) for row in document.value["nodes"])


def selected_spot_nodes(pods: DevicePods) -> tuple[SpotNodeRow, FieldPath] | None:
    """Return the spot nodes that pods require, and the path of the selector; None if pods may run on other nodes."""
    spec = pods.spec
    terms = spec.required_node_terms()
    if not terms and _label_keys_of_spot_nodes().isdisjoint(spec.node_selector):
        return None
    for nodes in read_spot_nodes():
        if spec.node_selector.get(nodes.key) == nodes.value:
            return nodes, pods.locate(spec.path("nodeSelector", nodes.key))
        if terms and all(_requires_spot_nodes(term, nodes) for term in terms):
            return nodes, pods.locate(spec.affinity.node_affinity.required.path("nodeSelectorTerms"))
    return None


def _requires_spot_nodes(term: NodeSelectorTerm, nodes: SpotNodeRow) -> bool:
    return any(
        requirement.key == nodes.key and requirement.operator == "In" and requirement.values == [nodes.value]
        for requirement in term.match_expressions
    )


def warn_of_spot_toleration_mismatch(subject: Subject) -> Iterator[Problem]:
    """Warn of pods that select spot nodes but do not tolerate the taint, and of pods that only tolerate the taint."""
    for pods in subject.once(read_device_workload).device_pods:
        bound = selected_spot_nodes(pods)
        if bound is None:
            yield from _check_spot_toleration_without_selector(pods)
        else:
            yield from _check_missing_spot_toleration(*bound, pods, subject)


def _check_missing_spot_toleration(
    nodes: SpotNodeRow, path: FieldPath, pods: DevicePods, subject: Subject
) -> Iterator[Problem]:
    if _tolerates_spot_taint(pods.spec, nodes) or _may_kueue_add_toleration(nodes, subject):
        return
    if _are_all_nodes_tainted(nodes, subject):
        message = (
            f"selects spot nodes of {nodes.cloud}, but the pods do not tolerate the taint of these nodes and stay "
            "Pending"
        )
        quotes = ', with the value "true" in quotes' if nodes.value == "true" else ""
        yield SPOT_TOLERATION.problem(path, message, f"tolerate `{nodes.key}={nodes.value}:NoSchedule`{quotes}")


def _tolerates_spot_taint(spec: PodSpec | ResourceFlavorSpec, nodes: SpotNodeRow) -> bool:
    return is_tolerated(Taint.of({"key": nodes.key, "value": nodes.value, "effect": "NoSchedule"}), spec.tolerations)


def _may_kueue_add_toleration(nodes: SpotNodeRow, subject: Subject) -> bool:
    """Return whether Kueue may give the pods of a job with a queue the toleration of a flavor. If no flavor is known,
    return True.
    """
    if QUEUE_NAME not in subject.metadata.labels:
        return False
    flavors = subject.cluster_view().list_visible(ResourceFlavor)
    return not flavors or any(_tolerates_spot_taint(flavor.spec, nodes) for flavor in flavors)


def _are_all_nodes_tainted(nodes: SpotNodeRow, subject: Subject) -> bool:
    """Return whether all spot nodes of this row have the taint: the cloud always sets the taint, or all spot nodes in
    the view have the taint.
    """
    return nodes.tainted_by == "cloud" or nodes in subject.once(_spot_rows_with_all_nodes_tainted)


def _spot_rows_with_all_nodes_tainted(subject: Subject) -> frozenset[SpotNodeRow]:
    """Return the rows for which all nodes in the view have the taint; no rows if the view does not have all nodes."""
    view, tainted, untainted = subject.cluster_view(), set[SpotNodeRow](), set[SpotNodeRow]()
    for node in view.list_visible(Node) if view.is_whole(Node.gvk) else ():
        for row in read_spot_nodes():
            if node.metadata.labels.get(row.key) == row.value:
                (tainted if _has_spot_taint(node, row) else untainted).add(row)
    return frozenset(tainted - untainted)


def _has_spot_taint(node: Node, nodes: SpotNodeRow) -> bool:
    return any(
        taint.key == nodes.key and taint.value == nodes.value and taint.effect in KEEPS_OUT
        for taint in node.spec.taints
    )


def _check_spot_toleration_without_selector(pods: DevicePods) -> Iterator[Problem]:
    """Warn of a toleration for spot nodes if the pod selects neither spot nodes nor a node pool. The author of a pod
    that selects a pool knows whether the nodes of the pool are spot nodes.
    """
    spec = pods.spec
    if not spec.tolerations or _selects_spot_nodes_or_pool(spec):
        return
    by_taint = {nodes.key: nodes for nodes in read_spot_nodes() if nodes.tainted_by != "none"}
    for toleration in spec.tolerations:
        nodes = by_taint.get(toleration.key)
        if nodes and toleration.value in ("", nodes.value):
            message = (
                f"tolerates spot nodes of {nodes.cloud}, but does not select spot nodes, so the pods may also run on "
                "other nodes"
            )
            value = '"true"' if nodes.value == "true" else nodes.value
            fix = f"set nodeSelector `{nodes.key}: {value}` if the pods should run only on spot nodes"
            yield SPOT_SELECTOR.problem(pods.locate(toleration.at), message, fix)


def _selects_spot_nodes_or_pool(spec: PodSpec) -> bool:
    """Return whether pods have node affinity, or select a node pool or nodes by price."""
    selected = {*spec.node_selector}
    keys = {nodes.key for nodes in read_spot_nodes() if nodes.tainted_by != "none"}
    asks = not selected.isdisjoint(keys | NODE_POOLS) or any(
        map(_OF_PRICE.search, (*selected, *spec.node_selector.values()))
    )
    return asks or bool(spec.affinity.node_affinity.preferred) or bool(spec.required_node_terms())


def check_checkpoint_outlives_spot_node(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    """Report a job on spot nodes that loses all files with the node.

    Code after `python -c` or in a here-document is usually a test, and is not reported. Programs without progress, such
    as `sleep` or a benchmark of GPUs, are not reported either.

    A program may upload its checkpoints, so the message is about files.
    """
    is_inline = all(
        cached_launch_of_container(container, subject).is_inline or _has_no_progress(container, subject)
        for container in pods.containers
    )
    if not is_inline and not _may_keep_files_elsewhere(pods, subject):
        message = "runs on spot nodes, but no volume outlives the pods, so a preemption loses the files of the job"
        fix = "mount a PersistentVolumeClaim for checkpoints"
        yield SPOT_CHECKPOINT.problem(pods.podset.path, message, fix)


def _has_no_progress(container: Container, subject: Subject) -> bool:
    """Return whether a container only sleeps, lists or tests GPUs, or runs a sample of CUDA."""
    words = container.words[2:] if container.words[1:2] == ("-c",) else container.words
    if container.is_found_in(_NO_PROGRESS, words[:1]) or container.is_found_in(_SAMPLE, (container.image,)):
        return True
    return is_trial(container, subject)


def _may_keep_files_elsewhere(pods: DevicePods, subject: Subject) -> bool:
    """Return whether the pods may keep files outside the node: in a volume, or in a bucket. A variable with a value
    from another object may name a bucket.
    """
    sources = {field for volume in pods.spec.volumes for field in volume.json if field != "name"}
    if sources - _ON_THE_NODE or subject.typed(Job).spec.volumes:
        return True
    return any(map(_may_name_bucket, pods.containers))


def _may_name_bucket(container: Container) -> bool:
    if container.env_from or any(variable.value_from.json for variable in container.env):
        return True
    if any("BUCKET" in variable.name.upper() for variable in container.env):
        return True
    texts = (*container.words, *(variable.value for variable in container.env))
    return container.is_found_in(_BUCKET, texts)


def warn_of_progress_lost_on_spot_nodes(subject: Subject) -> Iterator[Problem]:
    """Warn of progress that a job would lose if it runs only on spot nodes."""
    if subject.group_kind not in BATCH:
        return
    on_spot = [pods for pods in subject.once(read_device_workload).device_pods if selected_spot_nodes(pods)]
    for pods in on_spot:
        yield from check_checkpoint_outlives_spot_node(pods, subject)
    if on_spot:
        yield from _check_restart_policies(on_spot, subject)
        yield from _check_elastic_limits(subject.typed(TrainingOperatorJob).spec.elastic_policy)


def _check_restart_policies(on_spot: Sequence[DevicePods], subject: Subject) -> Iterator[Problem]:
    """Warn of a restartPolicy or backoffLimit of the Training Operator with which one preempted pod ends the job.

    The worker of an MPIJob does not end its job: the operator creates the worker again, the launcher retries, and
    ExitCode is not allowed (kubeflow/mpi-operator pkg/apis/kubeflow/validation/validation.go).
    """
    if subject.group_kind[0] != "kubeflow.org":
        return
    spec = subject.typed(TrainingOperatorJob).spec
    templates = {pods.podset.path for pods in on_spot}
    for role in spec.roles():
        if role.restart_policy == "Never" and role.path("template") in templates:
            message = "ends the job when one pod is preempted, and the pods run only on spot nodes"
            fix = "set ExitCode, so that pods restart after a signal"
            yield RESTART.problem(role.path("restartPolicy"), message, fix, "Never")
    if spec.run_policy.backoff_limit == 0:
        message = "ends the job when the first pod is preempted, and the pods run only on spot nodes"
        fix = "set the number of failures that the job may have"
        yield RESTART.problem(spec.run_policy.path("backoffLimit"), message, fix, 0)


def _check_elastic_limits(policy: ElasticPolicy) -> Iterator[Problem]:
    """Warn of an elastic job that cannot have fewer workers."""
    least = policy.min_replicas
    if least is not None and least == policy.max_replicas:
        message = "equals maxReplicas, so the job cannot continue with fewer workers when a spot node is taken back"
        yield ELASTIC_LIMITS.problem(policy.path("minReplicas"), message, "lower minReplicas", least)


def advise_grace_periods(subject: Subject) -> Iterator[Problem]:
    """Warn of pods that are killed before their preStop hooks have ended, or before they can write a checkpoint."""
    for pods in subject.once(read_device_workload).device_pods:
        yield from _check_grace_period(pods, subject)


def _check_grace_period(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    given = pods.spec.termination_grace_period_seconds
    grace = _DEFAULT_GRACE_S if given is None else given
    if given == 0 and subject.group_kind in BATCH:
        if all(_has_no_progress(container, subject) for container in pods.containers):
            return
        at = pods.locate(pods.spec.path("terminationGracePeriodSeconds"))
        message = "leaves the processes at most 2 s after SIGTERM, too little for a last checkpoint of a preempted job"
        yield GRACE_PERIOD.problem(at, message, "remove the field, or set the seconds that a checkpoint takes", 0)
        return
    for container in pods.spec.running_containers():
        hook = container.lifecycle.pre_stop
        if hook and (seconds := _sleep_seconds_of_hook(hook)) >= grace > 0:
            lasts = f"sleeps {seconds} s, but the grace period of the pod is {grace} s"
            fix = f"set terminationGracePeriodSeconds to more than {seconds}"
            at = pods.locate(hook.at)
            yield GRACE_PERIOD.problem(at, f"{lasts}, so SIGTERM comes only 2 s before SIGKILL", fix)


def _sleep_seconds_of_hook(hook: LifecycleHandler) -> int:
    """Return how many seconds a hook sleeps; 0 for a hook with another action."""
    words = " ".join(hook.exec.command)
    hook.charge_search(words)
    return max([hook.sleep.seconds, *(int(count) * _SECONDS[unit] for count, unit in _SLEEP.findall(words))])


def advise_preemption_policy(subject: Subject) -> Iterator[Problem]:
    """Warn of a PriorityClass with preemptionPolicy Never if the ClusterQueue of the job enables preemption. Kueue
    ignores the preemptionPolicy of a PriorityClass.
    """
    labels, pods = subject.metadata.labels, subject.once(read_device_workload).device_pods
    queue = labels.get(QUEUE_NAME)
    name = next(filter(None, (priority_class_name(using.template) for using in pods)), "")
    if not queue or labels.get(PRIORITY) or not name:
        return
    view = subject.cluster_view()
    priority_class = view.find(PriorityClass, name, namespaced=False)
    if priority_class.preemption_policy != "Never":
        return
    of = view.find(LocalQueue, queue).spec.cluster_queue
    if of and _does_queue_preempt(view.find(ClusterQueue, of, namespaced=False)):
        message = (
            f"is a PriorityClass with preemptionPolicy Never{view.file_of_object_as_text(priority_class.json)}, "
            "but Kueue ignores this policy, "
            f"so Kueue may preempt other jobs of {view.name_with_file(ClusterQueue.gvk, of)} for this job"
        )
        fix = f"set the label {PRIORITY} to a WorkloadPriorityClass with a low value"
        yield NEVER_PREEMPTS.problem(pods[0].locate(pods[0].spec.path("priorityClassName")), message, fix, name)


def _does_queue_preempt(queue: ClusterQueue) -> bool:
    preemption = queue.spec.preemption
    return any(
        policy not in ("", "Never") for policy in (preemption.within_cluster_queue, preemption.reclaim_within_cohort)
    )


def check_priority_classes_exist(subject: Subject) -> Iterator[Problem]:
    """Report PriorityClasses of pods that do not exist."""
    names = (priority_class_name(template) for _, template in subject.once(located_templates))
    if not subject.once(read_device_workload).device_pods or not any(names):
        return
    for named in Items(subject.fact("priorities")["classes"], subject.deadline):
        if named["absent"]:
            near = named["nearest"]
            message = f"PriorityClass `{named['name']}` does not exist, so the API server refuses the pods"
            fix = "create the class, or correct the name"
            if near:
                fix = f"write `{near}` if that is meant, or create the class"
            yield PREEMPTION_PRIORITY_CLASS.problem(named["path"], message, fix)
        elif not named["found"]:
            missing = MissingObject(kind=PRIORITY_CLASS.kind, name=named["name"])
            yield PREEMPTION_PRIORITY_CLASS.problem(named["path"], missing=(missing,))


_ADVICE: Final = (
    warn_of_spot_toleration_mismatch,
    warn_of_progress_lost_on_spot_nodes,
    advise_grace_periods,
    check_priority_classes_exist,
    advise_preemption_policy,
)
_ADVICE_OF_OTHERS: Final = (advise_grace_periods, check_priority_classes_exist)
"""The advice for kinds with controllers that choose the nodes and the lifetime of the pods."""
_LOOKUPS: Final = (*LOOKUPS, interest_in_fields(NODE, "metadata.labels", "spec.taints"), NAMESPACES)


def advise_preemption(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about an object. If several templates get the same advice, report it once."""
    yield from check_advice_without_repetitions(_ADVICE, SPOT_TOLERATION.id, subject)


def advise_preemption_of_others(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about an object with a controller that chooses the nodes and the lifetime of the pods."""
    yield from check_advice_without_repetitions(_ADVICE_OF_OTHERS, SPOT_TOLERATION.id, subject)


CHECKS: Final = (
    Check(group="preemption", run=advise_preemption, kinds=WORKLOADS, lookups=_LOOKUPS, of_made_objects=False),
    Check(
        group="preemption",
        run=advise_preemption_of_others,
        kinds=PLACED - WORKLOADS,
        lookups=_LOOKUPS,
        of_made_objects=False,
    ),
)
