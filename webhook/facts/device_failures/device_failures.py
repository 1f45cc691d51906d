"""The steps after a failed pod: another pod, with other devices and an image that is already on the node.

https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.paths import path_as_text
from webhook.facts.device_failures.types import DEVICE_FAILURES
from webhook.facts.dra.device_claims import OWN_DEVICES
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.gpu.device_pods import DevicePods, is_training_container, read_device_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.pods import Container

BARE_POD: Final = DEVICE_FAILURES.rule(
    "device-failures/bare-pod",
    title="A Pod that trains has no controller",
    why=(
        "Nothing replaces a bare Pod when its node is lost, and its containers restart on the device that failed. "
        "Tests and benchmarks that a person starts again can do without a controller."
    ),
)
SHARED_CLAIM: Final = DEVICE_FAILURES.rule(
    "device-failures/shared-claim",
    title="Replaced pods get the failed device again",
    why=(
        "A ResourceClaim keeps its devices while it exists, so the replacement of a failed pod gets the same devices "
        "on the same node."
    ),
)
IMAGE_PULL: Final = DEVICE_FAILURES.rule(
    "device-failures/image-pull",
    title="imagePullPolicy is Always for an image that cannot change",
    why=(
        "A restart asks the registry about the image, and fails while the registry cannot be reached, although the "
        "node has the image."
    ),
    source="https://kubernetes.io/docs/concepts/containers/images/#image-pull-policy",
    level="advice",
    severity="low",
)

_POD: Final = ("", "Pod")
_IS_TEST: Final = re.compile(r"(?i)(?<![a-z])(nccl|rccl|tests?|bench(mark)?s?|preflight|smoke|check)(?![a-z])")
"""Parts of the name of a Pod or of its container that only tests its devices."""
_RUNS_TEST: Final = re.compile(
    r"(?i)(?<![a-z])([nr]ccl[-_]?(tests?|bench)|(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|broadcast"
    r"|reduce|gather|scatter|hypercube)_(perf|bench)|osu_[a-z]{2,20}|ib_[a-z]{4,8}_(bw|lat)|preflight|bench(mark)?s?"
    r"|tests?([-_]\w{1,100}+)?\.(py|sh))(?![a-z])"
)
"""The same of a command. Nothing in it may be read from each of its places to its end: a user chooses the text."""


def advise_bare_pods(subject: Subject) -> Iterator[Problem]:
    """Warn of a Pod that trains, and that nothing replaces."""
    for pods in subject.once(read_device_workload).device_pods if subject.group_kind == _POD else ():
        training = [container for container in pods.containers if is_training_container(container, subject)]
        if training and not any(_only_tries_devices(container, subject) for container in training):
            message = "the pod trains without a controller, so nothing replaces the pod when its node or device fails"
            yield BARE_POD.problem("spec", message, "create a Job or a training job instead")


def _only_tries_devices(container: Container, subject: Subject) -> bool:
    """Return whether a name, the image or the command of a container says that it runs a test or a benchmark."""
    if any(map(_IS_TEST.search, (subject.metadata.name, container.name))):
        return True
    image = container.image.rpartition("/")[2]
    return container.runs(_RUNS_TEST) or container.is_found_in(_RUNS_TEST, (image,))


def advise_reused_claims_of_single_pods(subject: Subject) -> Iterator[Problem]:
    """Warn of a ResourceClaim named in a template of one pod: a replacement pod gets the same devices, even failed
    ones. The rules of device claims report a claim that several pods share.
    """
    using = [
        pods
        for pods in subject.once(read_device_workload).device_pods
        if pods.pod_count == 1 and _any_pod_names_claim(pods)
    ]
    if not using or subject.group_kind == _POD:
        return
    names = {pods.podset.name for pods in using}
    for claim in subject.once(pod_claims).claims:
        is_own = claim.source == "claim" and claim.contents.is_exclusive
        if claim.pod_set in names and is_own and claim.users:
            message = f"a pod that replaces this one gets the devices of ResourceClaim `{claim.reference}` again"
            fix = OWN_DEVICES
            yield SHARED_CLAIM.problem(claim.at, f"{message}, even if the devices have failed", fix)


def _any_pod_names_claim(pods: DevicePods) -> bool:
    return any(claim.resource_claim_name for claim in pods.spec.resource_claims)


def advise_always_pull_of_image_digests(subject: Subject) -> Iterator[Problem]:
    """Advise against imagePullPolicy Always for images named by digest, once for all containers with devices."""
    places = [
        path_as_text(pods.locate(container.path("imagePullPolicy")))
        for pods in subject.once(read_device_workload).device_pods
        for container in pods.containers
        if container.image_pull_policy == "Always" and "@sha256:" in container.image
    ]
    if places:
        message = "makes every restart ask the registry, although an image with a digest never changes"
        problem = IMAGE_PULL.problem(places[0], message, "set IfNotPresent", "Always")
        yield replace(problem, also=tuple(places[1:]))
