"""Finds why a pod does not run: gates, missing nodes, claims, volumes, images, containers that end.

Source: k8s.io/kubernetes v1.36 pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime and pkg/kubelet/container (reasons
of waiting containers), pkg/kubelet/lifecycle and pkg/kubelet/eviction (reasons of failed pods).

A pod that ended and was replaced does not explain why a job waits. Failed pods still exist until they are collected,
and deleted pods until their containers have ended. Source: k8s.io/kubernetes v1.36 pkg/controller (FilterActivePods),
pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.cluster.naming import group_kind
from webhook.status.owned_objects import OwnedObjects
from webhook.status.refusals import why_unschedulable
from webhook.status.sources import ClusterReading, event_words
from webhook.status.statement import (
    Standing,
    Statement,
    Turn,
    conditions_of,
    items_at,
    map_at,
    name_of,
    number_at,
    statement_about,
    text_at,
    true_condition,
)
from webhook.text.wording import counted

_PER_NODE: Final = ("apps", "DaemonSet")
_JOB: Final = ("batch", "Job")
_MAKING_AGAIN: Final = frozenset(
    (_JOB, _PER_NODE, ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("", "ReplicationController"))
)
"""The kinds with a controller that replaces failed and deleted pods."""
_CLAIM: Final = GroupVersionKind("", "v1", "PersistentVolumeClaim")
_NODE: Final = GroupVersionKind("", "v1", "Node")
_STORAGE_CLASS: Final = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
_KUEUE_GATES: Final = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
_IMAGE: Final = "correct the name or tag of the image, or name a Secret for its registry in imagePullSecrets"
_WAITING: Final[Mapping[str, tuple[str, str]]] = {
    "ImagePullBackOff": ("cannot pull its image", _IMAGE),
    "ErrImagePull": ("cannot pull its image", _IMAGE),
    "ErrImageNeverPull": (
        "may not pull its image, and the node does not have the image",
        "set another imagePullPolicy",
    ),
    "InvalidImageName": ("has an image name that cannot be read", "correct the name of the image"),
    "ImageInspectError": ("has an image that the node cannot read", "ask the administrator of the node"),
    "RegistryUnavailable": ("cannot reach the registry of its image", "wait, or use another registry"),
    "SignatureValidationFailed": ("has an image with a signature that the node does not accept", "use a signed image"),
    "CreateContainerConfigError": (
        "cannot be created, because something that it refers to is missing",
        "create the ConfigMap, Secret or key that the message names",
    ),
    "CreateContainerError": ("cannot be created", "fix what the message names"),
    "RunContainerError": ("cannot be started", "fix its command, or what the message names"),
    "PreStartHookError": ("cannot be started", "fix what the message names"),
    "PostStartHookError": ("failed its postStart hook", "fix lifecycle.postStart"),
}
"""The reasons of waiting containers, each with its meaning and the fix."""
_EXITS: Final[Mapping[int, str]] = {
    126: "its command cannot be executed",
    127: "its command does not exist in the image",
    134: "it aborted",
    137: "it was killed",
    139: "it crashed with a segmentation fault",
    143: "it was asked to stop",
}
_FAILED: Final[Mapping[str, tuple[str, str]]] = {
    "Evicted": ("the kubelet evicted it", "ask for the memory and storage that it uses"),
    "DeadlineExceeded": ("it ran longer than activeDeadlineSeconds", "raise activeDeadlineSeconds"),
    "UnexpectedAdmissionError": (
        "the kubelet refused it, because the device plugin could not give the devices",
        "look at the device plugin of the node, and at rules of shared GPUs",
    ),
    "NodeLost": ("its node was lost", "create it again"),
    "NodeAffinity": ("its node does not have the labels that it selects", "correct nodeSelector or nodeName"),
    "Terminated": ("it was stopped", "create it again"),
    "Preempting": ("the kubelet stopped it for a critical pod", "create it again"),
    "Shutdown": ("its node was shut down", "create it again"),
}
_ONE_SHARE: Final = "maximum request size for shared resources is 1"
"""The message of NVIDIA's device plugin if MPS shares the GPUs, or with failRequestsGreaterThanOne."""
_DISRUPTED: Final[Mapping[str, str]] = {
    "PreemptionByScheduler": "the scheduler preempted it for a pod of higher priority",
    "DeletionByTaintManager": "its node got a taint that it does not tolerate",
    "EvictionByEvictionAPI": "it was evicted through the API, for example by a drain of its node",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "the kubelet ended it",
}
_FATAL_PROBES: Final[Mapping[str, str]] = {
    "startup": "raise failureThreshold of the startupProbe, or correct the port and the path that the probe calls",
    "liveness": "set a startupProbe that lasts until the model is loaded, or correct what the livenessProbe calls",
}
"""The probes with which the kubelet kills a container after a failure, each with the fix."""
_NOT_MOUNTED: Final = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_ATTACHED: Final = "Multi-Attach error"
_NOT_PREPARED: Final = ("FailedPrepareDynamicResources", "FailedCreatePodSandBox", "NetworkNotReady")


def read_pod(pod: JSON) -> Statement | None:
    """Return why a pod does not run, from the pod alone; None if the pod is ready or succeeded."""
    phase = text_at(pod, ("status", "phase"))
    if phase == "Succeeded":
        return None
    if phase == "Failed":
        failed = _statement_about_failed_pod(pod)
        return replace(failed, standing="stuck") if makes_pods_again(pod) else failed
    if text_at(pod, ("metadata", "deletionTimestamp")):
        return _statement_about_deleted_pod(pod)
    if phase == "Running":
        return _container_statement(pod) or _statement_about_unready_pod(pod)
    if text_at(pod, ("spec", "nodeName")):
        return _container_statement(pod) or statement_about(pod, "starting", Turn.CONTAINER, _how_it_starts(pod))
    return _pod_without_node(pod)


def explain_pod(pod: JSON, statement: Statement, reading: ClusterReading) -> Iterator[Statement]:
    """Yield a pod's statement with details from its events, and statements about the claims that it waits for."""
    if text_at(pod, ("metadata", "deletionTimestamp")):
        yield _statement_about_lost_node(pod, reading) or statement
        return
    if statement.turn is Turn.NODE:
        yield from _unbound_claims(pod, reading)
    if statement.turn in (Turn.CONTAINER, Turn.PROGRESS) and (killed := _statement_about_failing_probe(pod, reading)):
        yield killed
        return
    is_starting = statement.standing == "starting"
    if is_starting and (problem := _statement_about_silent_node(pod, reading) or _problem_of_start(pod, reading)):
        yield problem
    else:
        yield statement


def is_ready(pod: JSON) -> bool:
    """Return whether a pod runs and is ready, or succeeded."""
    if text_at(pod, ("status", "phase")) == "Succeeded":
        return True
    return true_condition(conditions_of(pod), "Ready") is not None


def _pod_without_node(pod: JSON) -> Statement:
    scheduled = conditions_of(pod).get("PodScheduled")
    gates = [text_at(each, ("name",)) for each in items_at(pod, ("spec", "schedulingGates"))]
    if gates:
        if any(each in _KUEUE_GATES for each in gates):
            return statement_about(
                pod,
                "waits",
                Turn.GATE,
                f"Kueue keeps the pod from the scheduler with gate {gates[0]} until it admits the job",
                words=f"schedulingGates: {', '.join(gates)}",
            )
        return statement_about(
            pod,
            "stuck",
            Turn.GATE,
            f"scheduling gate {gates[0]} is set, and schedulers ignore the pod until a controller removes the gate",
            "check that the controller that removes this gate runs",
            words=f"schedulingGates: {', '.join(gates)}",
        )
    scheduler = text_at(pod, ("spec", "schedulerName")) or "default-scheduler"
    if scheduled is None or scheduled.status != "False":
        return statement_about(
            pod,
            "waits",
            Turn.SILENCE,
            f"scheduler {scheduler} has not said anything about the pod",
            f"check whether a scheduler named {scheduler} runs",
        )
    standing, sentence, fix = why_unschedulable(scheduled.message)
    return statement_about(pod, standing, Turn.NODE, sentence, fix, words=scheduled.words)


def _how_it_starts(pod: JSON) -> str:
    """Say what happens on the node of a pod that does not run yet."""
    for status in items_at(pod, ("status", "initContainerStatuses")):
        if map_at(status, ("state", "running")) and status.get("started") is not True:
            return f"init container {text_at(status, ('name',))} of the pod runs"
    return "a node has the pod, and its containers are being created"


def _statement_about_deleted_pod(pod: JSON) -> Statement:
    finalizers = get(pod, ("metadata", "finalizers"), None)
    by = next((each for each in finalizers if isinstance(each, str)), "") if isinstance(finalizers, list) else ""
    sentence = f"the pod is being deleted{f', and waits for finalizer {by}' if by else ''}"
    return statement_about(pod, "starting", Turn.PROGRESS, sentence)


def _statement_about_lost_node(pod: JSON, reading: ClusterReading) -> Statement | None:
    """Return the statement that a deleted pod stays because the kubelet of its node does not answer; None if the
    kubelet answers, or if the state of the node is not known.
    """
    name = text_at(pod, ("spec", "nodeName"))
    ready = conditions_of(reading.get(_NODE, "", name)).get("Ready") if name else None
    if ready is None or ready.status == "True":
        return None
    sentence = f"node {name} does not answer, so the pod there is not deleted, and no new pod replaces it"
    fix = "repair or delete the node; if it is shut down for good, delete the pod with --force"
    return statement_about(pod, "stuck", Turn.NODE, sentence, fix, words=f"Node {name}: {ready.words}")


def _statement_about_silent_node(pod: JSON, reading: ClusterReading) -> Statement | None:
    """Return the statement that a pod is not ready because the kubelet of its node does not answer."""
    name = text_at(pod, ("spec", "nodeName"))
    ready = conditions_of(reading.get(_NODE, "", name)).get("Ready") if name else None
    if ready is None or ready.status == "True":
        return None
    sentence = f"node {name} of the pod is not Ready, so nothing is known of its containers"
    fix = "repair or delete the node"
    return statement_about(pod, "stuck", Turn.CONTAINER, sentence, fix, words=f"Node {name}: {ready.words}")


def _statement_about_failed_pod(pod: JSON) -> Statement:
    reason, message = text_at(pod, ("status", "reason")), text_at(pod, ("status", "message")).strip()
    words = ": ".join(filter(None, (reason, message)))
    disrupted = true_condition(conditions_of(pod), "DisruptionTarget")
    if disrupted is not None and reason not in _FAILED:
        sentence = _DISRUPTED.get(disrupted.reason, f"it was ended ({disrupted.reason})")
        return statement_about(pod, "failed", Turn.CONTAINER, f"the pod failed: {sentence}", "", words=disrupted.words)
    if _ONE_SHARE in message:
        sentence = "the pod failed: the GPUs of its node are shared, and one container may have only 1 share"
        fix = "ask for 1, or select nodes with GPUs that are not shared"
        return statement_about(pod, "failed", Turn.CONTAINER, sentence, fix, words=words)
    if reason in _FAILED:
        sentence, fix = _FAILED[reason]
        return statement_about(pod, "failed", Turn.CONTAINER, f"the pod failed: {sentence}", fix, words=words)
    if reason.startswith("OutOf"):
        resource = reason.removeprefix("OutOf")
        sentence = f"the pod failed: its node had too little {resource} when the pod arrived"
        return statement_about(pod, "failed", Turn.CONTAINER, sentence, "create it again", words=words)
    ended = _container_statement(pod)
    return ended or statement_about(pod, "failed", Turn.CONTAINER, "the pod failed", "look at its logs", words=words)


def _container_statement(pod: JSON) -> Statement | None:
    """Explain the first container that cannot start, or that ended with a failure."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in items_at(pod, ("status", field)):
            if statement := _statement_about_container(pod, status):
                return statement
    return None


def _statement_about_container(pod: JSON, status: Mapping[str, JSON]) -> Statement | None:
    name = text_at(status, ("name",))
    waiting = map_at(status, ("state", "waiting"))
    reason, message = text_at(waiting, ("reason",)), text_at(waiting, ("message",)).strip()
    if reason == "CrashLoopBackOff":
        ended = map_at(status, ("lastState", "terminated"))
        sentence, fix, words = _why_ended(pod, name, ended, was_restarted=True)
        count = number_at(status, ("restartCount",))
        statement_text = f"container {name} ends again and again, {count} times so far: {sentence}"
        return statement_about(pod, "stuck", Turn.CONTAINER, statement_text, fix, words=words)
    if reason in _WAITING:
        sentence, fix = _WAITING[reason]
        image = text_at(status, ("image",))
        of_image = f" {image}" if image and "image" in sentence and sentence.endswith("its image") else ""
        words = f"{reason}: {message}" if message else reason
        return statement_about(pod, "stuck", Turn.CONTAINER, f"container {name} {sentence}{of_image}", fix, words=words)
    ended = map_at(status, ("state", "terminated"))
    if ended and number_at(ended, ("exitCode",)):
        sentence, fix, words = _why_ended(pod, name, ended, was_restarted=False)
        phase = text_at(pod, ("status", "phase"))
        standing: Standing = "failed" if phase == "Failed" else "stuck"
        return statement_about(pod, standing, Turn.CONTAINER, f"container {name} failed: {sentence}", fix, words=words)
    return None


def _why_ended(pod: JSON, name: str, ended: Mapping[str, JSON], *, was_restarted: bool) -> tuple[str, str, str]:
    """Return a sentence about the container, a fix, and the text of its status."""
    code, reason = number_at(ended, ("exitCode",)), text_at(ended, ("reason",))
    message = " ".join(text_at(ended, ("message",)).split())
    words = f"{reason or 'Terminated'}, exit code {code}{f': {message}' if message else ''}"
    previous = " --previous" if was_restarted else ""
    logs = f"read its log: kubectl logs -n {name_of(pod).namespace} {name_of(pod).name} -c {name}{previous}"
    if reason == "OOMKilled":
        limit = _memory_limit(pod, name)
        than = f"its limit of {limit}" if limit else "its node had"
        return f"it used more memory than {than} and was killed", "raise the memory limit, or use less memory", words
    if reason in ("ContainerCannotRun", "StartError"):
        return "it cannot be started", "fix its command, or what the message names", words
    exit_text = f"exit code {code}"
    return (f"{exit_text}, {_EXITS[code]}" if code in _EXITS else exit_text), logs, words


def _memory_limit(pod: JSON, name: str) -> str:
    for field in ("containers", "initContainers"):
        for container in items_at(pod, ("spec", field)):
            if container.get("name") == name:
                return str(map_at(container, ("resources", "limits")).get("memory") or "")
    return ""


def _statement_about_unready_pod(pod: JSON) -> Statement | None:
    """Return the statement about a pod that runs but is not ready; None for other pods."""
    conditions = conditions_of(pod)
    ready = conditions.get("Ready")
    if ready is None or ready.status != "False":
        return None
    late = next((each for each in items_at(pod, ("status", "containerStatuses")) if not each.get("ready")), None)
    name, ended = text_at(late, ("name",)), map_at(late, ("lastState", "terminated"))
    unready_text = f"container {name} runs and is not ready yet" if late else "the pod runs and is not ready yet"
    if ended and (count := number_at(late, ("restartCount",))):
        sentence, _, _ = _why_ended(pod, name, ended, was_restarted=True)
        unready_text += f", after it ended {counted(count, 'time')}; the last time: {sentence}"
    return statement_about(pod, "starting", Turn.PROGRESS, unready_text, "", words=ready.words)


def _statement_about_failing_probe(pod: JSON, reading: ClusterReading) -> Statement | None:
    """Return the statement that the kubelet kills a container because of a probe. Only an event says this."""
    late = [
        each
        for each in items_at(pod, ("status", "containerStatuses"))
        if not each.get("ready") and text_at(each, ("lastState", "terminated", "reason")) in ("Error", "Completed")
    ]
    if not late:
        return None
    events = reading.events(pod, "Killing")
    for status in late:
        name = text_at(status, ("name",))
        for probe, fix in _FATAL_PROBES.items():
            message = f"Container {name} failed {probe} probe"
            killing = next((each for each in events if text_at(each, ("message",)).startswith(message)), None)
            if killing is not None:
                count = counted(number_at(status, ("restartCount",)), "time")
                sentence = f"the kubelet kills container {name}, because its {probe} probe fails; it restarted {count}"
                failures = (each for each in events if text_at(each, ("message",)).lower().startswith(f"{probe} probe"))
                words = event_words(next(failures, killing))
                return statement_about(pod, "stuck", Turn.CONTAINER, sentence, fix, words=words)
    return None


def _problem_of_start(pod: JSON, reading: ClusterReading) -> Statement | None:
    """Return the problem of a pod that has a node but has not started, from its events."""
    for event in reading.events(pod):
        reason, words = text_at(event, ("reason",)), event_words(event)
        if reason in _NOT_MOUNTED:
            sentence, fix = (
                "a volume of the pod cannot be mounted",
                "create or correct the volume, ConfigMap or Secret that the message names",
            )
            if _ATTACHED in words:
                sentence = "a volume of the pod is attached to another node"
                fix = "end the pod that uses the volume, or use a volume with the access mode ReadWriteMany"
            return statement_about(pod, "stuck", Turn.CONTAINER, sentence, fix, words=words)
        if reason in _NOT_PREPARED:
            sentence, fix = "the node cannot prepare the pod", "look at the driver or the network of the node"
            return statement_about(pod, "stuck", Turn.CONTAINER, sentence, fix, words=words)
        if reason == "Unhealthy":
            sentence = "a probe of the pod fails"
            fix = "fix the probe or the endpoint that it calls; if a model loads slowly, set a startupProbe"
            return statement_about(pod, "starting", Turn.PROGRESS, sentence, fix, words=words)
    return None


def _unbound_claims(pod: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why PersistentVolumeClaims of a pod are not bound."""
    pod_name = name_of(pod)
    for volume in items_at(pod, ("spec", "volumes")):
        name = text_at(volume, ("persistentVolumeClaim", "claimName"))
        if "ephemeral" in volume:
            name = f"{pod_name.name}-{text_at(volume, ('name',))}"
        claim = reading.get(_CLAIM, pod_name.namespace, name) if name else None
        if claim is not None and (statement := read_volume_claim(claim, reading)) and statement.turn is Turn.CLAIM:
            yield statement


def read_volume_claim(claim: JSON, reading: ClusterReading) -> Statement | None:
    """Return why a PersistentVolumeClaim is not bound; None if it is bound."""
    phase, name = text_at(claim, ("status", "phase")), name_of(claim).name
    if phase == "Lost":
        sentence, fix = (
            f"the volume of PersistentVolumeClaim {name} is gone",
            "restore the volume, or create another claim",
        )
        return statement_about(claim, "stuck", Turn.CLAIM, sentence, fix)
    if phase != "Pending":
        return None
    for event in reading.events(claim):
        reason, message = text_at(event, ("reason",)), text_at(event, ("message",))
        if reason in ("ProvisioningFailed", "FailedBinding"):
            if "no storage class is set" in message:
                sentence = f"PersistentVolumeClaim {name} has no StorageClass, and no volume fits it"
                fix = "name a StorageClass in spec.storageClassName"
            elif "storageclass" in message.lower() and "not found" in message:
                sentence = f"StorageClass {text_at(claim, ('spec', 'storageClassName'))} does not exist"
                fix = f"name another class in PersistentVolumeClaim {name}, or create it"
            else:
                sentence, fix = (
                    f"PersistentVolumeClaim {name} gets no volume",
                    "ask the administrator of the StorageClass",
                )
            return statement_about(claim, "stuck", Turn.CLAIM, sentence, fix, words=event_words(event))
    storage_class = reading.get(_STORAGE_CLASS, "", text_at(claim, ("spec", "storageClassName")))
    if text_at(storage_class, ("volumeBindingMode",)) == "WaitForFirstConsumer":
        sentence = f"PersistentVolumeClaim {name} gets a volume once a pod that uses it has a node"
        return statement_about(claim, "waits", Turn.SILENCE, sentence)
    sentence = f"PersistentVolumeClaim {name} is not bound to a volume"
    return statement_about(claim, "waits", Turn.CLAIM, sentence, "look at its StorageClass and its provisioner")


def makes_pods_again(pod: JSON) -> bool:
    """Return whether the controller of a pod replaces the pod when the pod fails. Jobs do this up to a limit."""
    return _controller(pod)[0] in _MAKING_AGAIN


def without_replaced_pods(pods: Sequence[JSON], tree: OwnedObjects) -> tuple[Sequence[JSON], Sequence[JSON]]:
    """Return the pods that count, and the pods that failed or are being deleted and have been replaced.

    The pod that a user names always counts.
    """
    owners = {text_at(each, ("metadata", "uid")): each for each in (*tree.owners, tree.root, *tree.objects)}
    active: dict[str, int] = defaultdict(int)
    for pod in pods:
        active[_controller(pod)[1]] += _is_active(pod)
    current, replaced = list[JSON](), list[JSON]()
    for pod in pods:
        owner = owners.get(_controller(pod)[1])
        is_replaced = pod is not tree.root and not _is_active(pod) and makes_pods_again(pod)
        is_replaced = is_replaced and text_at(pod, ("status", "phase")) != "Succeeded"
        has_others = owner is not None and active[_controller(pod)[1]] >= _wanted_pods(owner)
        (replaced if is_replaced and has_others else current).append(pod)
    return current, replaced


def _wanted_pods(owner: JSON) -> int:
    """Return the number of active pods with which a controller has replaced all its ended pods; at least 1."""
    if group_kind(owner) == _JOB:
        return max(number_at(owner, ("status", "active")), 1)
    if group_kind(owner) == _PER_NODE:
        return max(number_at(owner, ("status", "desiredNumberScheduled")), 1)
    replicas = get(owner, ("spec", "replicas"), 1)
    return max(replicas, 1) if isinstance(replicas, int) else 1


def _is_active(pod: JSON) -> bool:
    ended = text_at(pod, ("status", "phase")) in ("Failed", "Succeeded")
    return not ended and not text_at(pod, ("metadata", "deletionTimestamp"))


def _controller(pod: JSON) -> tuple[tuple[str, str], str]:
    """Return the group and kind of the controller of a pod, and its uid."""
    references: Sequence[Mapping[str, JSON]] = list(items_at(pod, ("metadata", "ownerReferences")))
    reference = next((each for each in references if each.get("controller") is True), None)
    group = text_at(reference, ("apiVersion",)).rpartition("/")[0]
    return (group, text_at(reference, ("kind",))), text_at(reference, ("uid",))
