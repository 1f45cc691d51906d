"""Shares of GPU cards under HAMi, Volcano and Koordinator: how many cards a container needs, and how much of each card.

A container gets each card at most once, and needs the requested memory on each card. An annotation lists the cards of a
node, and annotations of the pod may choose cards by type or UUID. With HAMi, only HAMi's scheduler counts memory and
cores of cards, and no node offers these as resources. So pods that HAMi's webhook ignores wait for ever. The webhook
ignores pods of schedulers other than the default scheduler and its own --scheduler-name, which HAMi's chart sets to
hami-scheduler.

Source: Project-HAMi/HAMi@4707fb02 pkg/scheduler/webhook.go, pkg/device/nvidia/device.go; volcano-sh/volcano@ed72c7c81
pkg/scheduler/api/devices/nvidia/vgpu/utils.go; koordinator-sh/koordinator@a7a1b76b deviceshare/utils.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import NAMESPACE
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.quantity import read_quantity_or_none
from webhook.deadline import Deadline
from webhook.facts.gpu.device_pods import DevicePods, without_repeated_problems
from webhook.facts.nodes.node_offers import (
    HAMI_CARDS,
    HAMI_IMAGE,
    VOLCANO_CARDS,
    NodeOffer,
    PodsAndNodes,
    has_hami,
    is_counted_only_by_hami,
    offers_of_nodes,
    path_of_amount,
    pods_and_nodes,
    pods_with_extended_resources,
)
from webhook.facts.nodes.types import SHARED_GPU
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.cluster_objects import Deployment, Node
from webhook.typed.fields import Number, Text
from webhook.typed.objects import Object
from webhook.typed.pods import Container, PodTemplate
from webhook.typed.view import ReadingContext, Typed
from webhook.yamltext.placeholders import is_placeholder

CARDS: Final = SHARED_GPU.rule(
    "shared-gpu/cards",
    title="A container requests shares of more cards than a node has",
    why="A container gets each card once, so the scheduler finds no node, and the pod stays Pending.",
    source="Project-HAMi/HAMi@4707fb02 pkg/device/nvidia/device.go",
    function="Fit",
)
CARD_MEMORY: Final = SHARED_GPU.rule(
    "shared-gpu/card-memory",
    title="A container requests more memory of a card than a card has",
    why="The amount is memory of each card, so no card fits, and the pod stays Pending.",
    source="Project-HAMi/HAMi@4707fb02 pkg/device/nvidia/device.go",
    function="Fit",
)
NOT_TAKEN: Final = SHARED_GPU.rule(
    "shared-gpu/hami-not-taken",
    title="A pod requests a share of a card, but the webhook of HAMi ignores the pod",
    why="The scheduler looks for a resource that no node has, so the pod stays Pending.",
    source="Project-HAMi/HAMi@4707fb02 pkg/scheduler/webhook.go",
    function="Handle",
)
PRIVILEGED: Final = SHARED_GPU.rule(
    "shared-gpu/hami-privileged",
    title="HAMi does not share the GPU of a privileged container",
    why="HAMi up to v2.9 ignores the container, so the container sees every GPU. Later releases refuse the pod.",
    source="Project-HAMi/HAMi@4707fb02 pkg/scheduler/webhook.go",
    level="advice",
    fails="silent",
)
NOT_ALLOCATED: Final = SHARED_GPU.rule(
    "shared-gpu/hami-not-allocated",
    title="A pod that HAMi ignores requests a GPU of HAMi's device plugin",
    why=(
        "HAMi's device plugin gives a GPU only to a pod that HAMi's scheduler has bound. For any other pod, the plugin "
        "answers with the error `no binding pod found`, and the kubelet fails the pod. Releases after v2.9 refuse "
        "privileged containers."
    ),
    source="Project-HAMi/HAMi v2.7.1 pkg/util/util.go",
    function="GetPendingPod",
    fails="start",
)
MEMORY_NUMBER: Final = SHARED_GPU.rule(
    "shared-gpu/memory-number",
    title="A container requests more memory of a card than HAMi can count",
    why=(
        "HAMi counts MiB in 32 bits. For a larger number, HAMi up to v2.9 sets no limit or finds no card, and later "
        "releases give the container no card."
    ),
    source="Project-HAMi/HAMi@4707fb02 pkg/device/nvidia/device.go",
    function="GenerateResourceRequests",
    level="advice",
    fails="silent",
)
CORES: Final = SHARED_GPU.rule(
    "shared-gpu/cores-above-card",
    title="A container requests more than 100 per cent of the cores of a card",
    why="HAMi counts more than 100 as 100, so no other container can use the card.",
    source="Project-HAMi/HAMi@4707fb02 pkg/device/nvidia/device.go",
    level="advice",
    fails="silent",
)
PERCENT: Final = SHARED_GPU.rule(
    "shared-gpu/percent-above-card",
    title="A container requests more than 100 per cent of a card",
    why="HAMi from 2.10 on refuses the pod. Earlier releases of HAMi, and Volcano, find no card that fits.",
    source="Project-HAMi/HAMi@4707fb02 pkg/device/nvidia/device.go",
    function="validateMemoryPercentage",
)
NODE_NAME: Final = SHARED_GPU.rule(
    "shared-gpu/hami-node-name",
    title="A pod with nodeName requests a share of a card from HAMi",
    why="The scheduler of HAMi chooses card and node together, so the webhook of HAMi refuses the pod.",
    source="Project-HAMi/HAMi@4707fb02 pkg/scheduler/webhook.go",
    function="Handle",
    fails="controller",
)
VGPU_NODE_NAME: Final = SHARED_GPU.rule(
    "shared-gpu/vgpu-node-name",
    title="A pod with nodeName requests a vGPU from Volcano",
    why=(
        "Volcano writes the chosen card into annotations when it places a pod. A pod with nodeName skips the "
        "scheduler, so the device plugin finds no card for the pod, and the pod fails."
    ),
    source="Project-HAMi/volcano-vgpu-device-plugin@4fb76ba1 pkg/plugin/server.go",
    function="Allocate",
    fails="start",
)
VGPU_SCHEDULER: Final = SHARED_GPU.rule(
    "shared-gpu/vgpu-scheduler",
    title="A pod with Volcano vGPUs uses the default scheduler instead of Volcano",
    why="The default scheduler chooses no card. It counts only sums of memory, so the pod may fail on the node.",
    source="volcano-sh/volcano@ed72c7c81 pkg/scheduler/api/devices/nvidia/vgpu/utils.go",
    level="advice",
    fails="start",
)
KOORDINATOR: Final = SHARED_GPU.rule(
    "shared-gpu/koordinator-amount",
    title="Koordinator cannot divide the requested amount over devices",
    why=(
        "Above 100 per cent Koordinator accepts only multiples of 100. With gpu.shared, Koordinator divides the amount "
        "by this number of GPUs, and each part may be at most 100. With other amounts, the pod stays Pending."
    ),
    source="koordinator-sh/koordinator@a7a1b76b pkg/scheduler/plugins/deviceshare/utils.go",
)
KOORDINATOR_PAIR: Final = SHARED_GPU.rule(
    "shared-gpu/koordinator-combination",
    title="A container requests GPU resources that Koordinator does not combine",
    why="Koordinator accepts only some combinations of GPU resources, so the pod stays Pending.",
    source="koordinator-sh/koordinator@a7a1b76b pkg/scheduler/plugins/deviceshare/utils.go",
    function="ValidDeviceResourceCombinations",
)
_HAMI_GPU: Final = "nvidia.com/gpu"
_HAMI_MEMORY: Final = "nvidia.com/gpumem"
_HAMI_CORES: Final = "nvidia.com/gpucores"
_HAMI_PERCENT: Final = "nvidia.com/gpumem-percentage"
_UNSET_PERCENT: Final = 101
"""The percentage of memory that HAMi up to 2.9 assumes if no percentage is set."""
_VOLCANO_CORES: Final = "volcano.sh/vgpu-cores"
_VOLCANO_GPU: Final = "volcano.sh/vgpu-number"
_VOLCANO_MEMORY: Final = "volcano.sh/vgpu-memory"
_NAMES_OF_CARDS: Final = (
    (_HAMI_GPU, _HAMI_MEMORY, HAMI_CARDS),
    (_VOLCANO_GPU, _VOLCANO_MEMORY, VOLCANO_CARDS),
)
"""The resource for a number of cards, the resource for memory of each card, and the annotation with a node's cards."""
_KEPT_STATES: Final = 8
_WEBHOOK: Final = "hami.io/webhook"
_WITHOUT_LABEL: Final = "use another namespace, or ask the administrator to remove this label"
_DEFAULT_SCHEDULERS: Final = ("", "default-scheduler")
_SCHEDULER_NAME: Final = "--scheduler-name"
_SCHEDULER_OF_CHART: Final = "hami-scheduler"
_KOORDINATOR: Final = (
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/rdma",
    "koordinator.sh/fpga",
)
"""Resources of Koordinator that are percentages of devices."""
_KOORDINATOR_SHARED: Final = "koordinator.sh/gpu.shared"
"""The number of GPUs over which Koordinator divides the other amounts of GPUs."""
_KOORDINATOR_DIVIDED: Final = frozenset(("koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"))
_KOORDINATOR_CORES: Final = "koordinator.sh/gpu-core"
_KOORDINATOR_MEMORY: Final = ("koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu-memory")
_KOORDINATOR_SCHEDULER: Final = "koord-scheduler"
_WHOLE: Final = 100
_SHARES: Final = frozenset((_HAMI_CORES, _HAMI_MEMORY, _HAMI_PERCENT, _VOLCANO_CORES, _VOLCANO_GPU, *_KOORDINATOR))
"""Resources that are shares of cards, or that only one scheduler counts."""
_MIG: Final = "mig"
_LARGEST_NUMBER: Final = 2**31 - 1
_BY_TYPE: Final = ("nvidia.com/use-gputype", "nvidia.com/nouse-gputype")
_BY_ID: Final = ("nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid")
"""Annotations of a pod with the cards that a scheduler may and may not use. Volcano reads only the types."""
_LONGEST_SHOWN: Final = 80
"""The length of the longest annotation that a message shows."""
_BY_HOST_NAME: Final = "remove nodeName, and select the node by nodeSelector `kubernetes.io/hostname`"


class RegisteredCard(Typed):
    """A card in the annotation that HAMi writes from 2.8 on."""

    devmem = Number()
    id = Text()
    mode = Text()
    type = Text()


@dataclass(frozen=True, slots=True)
class Card:
    """A card of a node: memory in MiB, whether a container may have several parts of the card (MIG), type and UUID."""

    memory: int
    has_parts: bool
    type: str = ""
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class CardsOfNodes:
    """The cards that a pod may use on the nodes that fit the pod. There is at least one node.

    Args:
        by_node: the cards, by the name of the node.
        most: the largest number of cards on a node.
        node_with_most: the name of a node with this number of cards.
        largest: the memory of the largest card in MiB.
        have_parts: whether a container may have several parts of some card.
        chosen_by: the annotations of the pod that choose the cards, such as `nvidia.com/use-gputype: A100`.
    """

    by_node: Mapping[str, tuple[Card, ...]]
    most: int
    node_with_most: str
    largest: int
    have_parts: bool
    chosen_by: str

    @classmethod
    def of(cls, by_node: Mapping[str, tuple[Card, ...]], chosen_by: str = "") -> CardsOfNodes:
        """Return the cards of nodes with their largest values."""
        node, most = max(((name, len(listed)) for name, listed in by_node.items()), key=lambda pair: pair[1])
        cards = [card for listed in by_node.values() for card in listed]
        largest = max((card.memory for card in cards), default=0)
        return cls(by_node, most, node, largest, any(card.has_parts for card in cards), chosen_by)

    def have_memory(self, memory: int, count: int, deadline: Deadline) -> bool:
        """Return whether one node has `count` cards, or enough parts of a card, with at least `memory` MiB."""
        if count == 1 or self.largest < memory:
            return self.largest >= memory
        nodes = deadline.charge_for_items(self.by_node.values())
        return any(_have_memory(cards, memory, count) for cards in nodes)

    def memory_of_each(self, count: int, deadline: Deadline) -> int:
        """Return the most memory in MiB that each of `count` cards of one node can have; 0 if no node has so many
        cards.
        """
        most = 0
        for cards in deadline.charge_for_items(self.by_node.values()):
            rising = sorted(card.memory for card in cards)
            parts = (card.memory for card in cards if card.has_parts)
            most = max(most, *parts, rising[-count] if len(rising) >= count else 0)
        return most


@dataclass(frozen=True, slots=True)
class RequestedCards:
    """The cards that a container requests.

    Args:
        container: the container.
        number: the resource for the number of cards.
        memory_name: the resource for the memory of each card.
        annotation: the annotation with the cards of a node.
        count: the number of cards.
        memory: the memory of each card in MiB; 0 without a request.
        is_counted: whether the container requests a number of cards; otherwise the number is 1.
    """

    container: Container
    number: str
    memory_name: str
    annotation: str
    count: int
    memory: int
    is_counted: bool


def check_cards(subject: Subject) -> Iterator[Problem]:
    """Report containers that request more cards, or more memory of a card, than the nodes that fit the pod have."""
    for each in subject.once(pods_and_nodes):
        is_of_volcano = _is_placed_by_volcano(each.pods.template, subject)
        requests = [
            requested
            for container in each.pods.template.spec.all_containers()
            for requested in _requested_cards(container)
        ]
        effective_requests = [
            requested
            for requested in requests
            if (
                is_of_volcano
                if requested.annotation == VOLCANO_CARDS
                else not why_hami_ignores(requested.container, each, subject)
            )
        ]
        cards = {
            annotation: _cards_of_nodes(each, annotation)
            for annotation in {requested.annotation for requested in effective_requests}
        }
        for requested in effective_requests:
            if (of_nodes := cards[requested.annotation]) is not None:
                yield from without_repeated_problems(_check_container(requested, of_nodes, each), subject)


def requests_of_unlisted_cards(each: PodsAndNodes) -> Iterator[str]:
    """Yield the resources of Volcano with which pods request several cards, or memory of a card, although the nodes
    that fit the pods do not list their cards. One card may be offered as many shares.
    """
    for container in each.pods.template.spec.all_containers():
        for requested in _requested_cards(container):
            is_limited = requested.count > 1 or requested.memory
            if is_limited and requested.annotation == VOLCANO_CARDS and _cards_of_nodes(each, VOLCANO_CARDS) is None:
                yield requested.number


def check_pods_of_hami(subject: Subject) -> Iterator[Problem]:
    """Report pods that request a share from HAMi but that HAMi's webhook ignores or refuses.

    Also report privileged containers with GPUs, which HAMi does not share.
    """
    pods = subject.once(pods_and_nodes)
    if not pods or not has_hami(subject.cluster_view()):
        return
    for each in pods:
        for container in each.pods.template.spec.all_containers():
            problems = _check_container_of_hami(container, each, subject)
            yield from without_repeated_problems(problems, subject)
        yield from without_repeated_problems(_check_node_name(each, subject), subject)


def check_amounts(subject: Subject) -> Iterator[Problem]:
    """Report amounts that a scheduler refuses or counts as another amount; nodes are not compared."""
    for pods in pods_with_extended_resources(subject):
        yield from without_repeated_problems(_check_node_of_vgpu(pods), subject)
        is_of_koordinator = pods.template.spec.scheduler_name == _KOORDINATOR_SCHEDULER
        for container in pods.template.spec.all_containers():
            resources = container.resources
            has_shares = not (_SHARES.isdisjoint(resources.limits) and _SHARES.isdisjoint(resources.requests))
            if not has_shares and not is_of_koordinator:
                continue
            amounts = _amounts(container)
            for name, amount in amounts.items() if has_shares else ():
                is_of_volcano = _is_placed_by_volcano(pods.template, subject)
                path = pods.locate(path_of_amount(container, name))
                above_one = "request at most 100, or more cards"
                if name in _KOORDINATOR:
                    cards = amounts.get(_KOORDINATOR_SHARED, 0) if name in _KOORDINATOR_DIVIDED else 0
                    if (mistake := _mistake_in_amount(name, amount, cards)) is None:
                        continue
                    problem = KOORDINATOR.problem(path, *mistake, amount)
                elif name == _HAMI_CORES and amount > _WHOLE:
                    message = "is more than the 100 per cent of one card, so it counts as 100 for gpucores"
                    problem = CORES.problem(path, message, above_one, amount)
                elif name == _HAMI_MEMORY and amount > _LARGEST_NUMBER:
                    message = f"is a number of MiB, and HAMi counts at most {_LARGEST_NUMBER}"
                    written = resources.limits.get(name, resources.requests.get(name))
                    problem = MEMORY_NUMBER.problem(path, message, "write the number of MiB without a unit", written)
                elif (name == _HAMI_PERCENT and amount > _UNSET_PERCENT and _HAMI_MEMORY not in amounts) or (
                    name == _VOLCANO_CORES and amount > _WHOLE and is_of_volcano
                ):
                    message = "is more than the 100 per cent of one card, so no card fits"
                    problem = PERCENT.problem(path, message, above_one, amount)
                elif name == _VOLCANO_GPU and not is_of_volcano and _is_placed_by_default(pods.template):
                    message = "is a resource that only Volcano counts, but the default scheduler places the pods"
                    problem = VGPU_SCHEDULER.problem(path, message, "set schedulerName volcano")
                else:
                    continue
                yield from without_repeated_problems((problem,), subject)
            if is_of_koordinator:
                problems = _check_combination(container, amounts.keys(), pods)
                yield from without_repeated_problems(problems, subject)


def _mistake_in_amount(name: str, amount: int, cards: int) -> tuple[str, str] | None:
    """Return why Koordinator rejects a percentage of devices, and the fix; None for a valid percentage.

    `cards` is the number of GPUs over which the amount is divided; 0 if the amount is not divided.
    """
    if cards:
        most, of_each = cards * _WHOLE, f"for each of {cards} GPUs" if cards > 1 else "of 1 GPU"
        if amount > most:
            return f"is more than 100 per cent {of_each}", f"request at most {most}"
        message = f"must be a multiple of {cards} because it is divided over {cards} GPUs"
        return (message, f"request {amount + -amount % cards}") if amount % cards else None
    if amount <= _WHOLE or not amount % _WHOLE:
        return None
    below = amount // _WHOLE * _WHOLE
    devices = "GPUs" if name.startswith(_KOORDINATOR[0]) else "devices"
    message = f"must be a multiple of 100 because more than 100 per cent are whole {devices}"
    whole = f"{below} or {below + _WHOLE}" if below > _WHOLE else f"{below + _WHOLE}"
    return message, f"request {whole}, or at most 100"


def _check_node_of_vgpu(pods: DevicePods) -> Iterator[Problem]:
    spec = pods.template.spec
    if spec.node_name and any(_VOLCANO_GPU in _amounts(container) for container in spec.all_containers()):
        message = f"names node {spec.node_name}, but Volcano has to choose node and card, so the pod fails on the node"
        yield VGPU_NODE_NAME.problem(pods.locate(spec.path("nodeName")), message, _BY_HOST_NAME)


def _check_combination(container: Container, names: AbstractSet[str], pods: DevicePods) -> Iterator[Problem]:
    """Yield GPU resources of Koordinator that no release combines: a whole GPU together with other resources, two
    amounts of memory, and cores or shared GPUs without memory.
    """
    memory = sorted(names & {*_KOORDINATOR_MEMORY})
    parts = sorted(names & {_KOORDINATOR_CORES, _KOORDINATOR_SHARED, *_KOORDINATOR_MEMORY})
    whole = sorted(names & {_HAMI_GPU, _KOORDINATOR[0]})
    others = names - {*parts, *whole}
    message = ""
    if len(whole) > 1 or (whole and parts):
        message = f"requests {' and '.join((*whole, *parts))}, which Koordinator does not combine"
        first, *rest = (*reversed(whole), *parts)
        purpose = "whole GPUs" if first == _HAMI_GPU else "equal parts of cores and memory"
        fix = f"keep only {first} for {purpose}, or only {' and '.join(rest)} for parts of a GPU"
    elif len(memory) > 1:
        message = f"requests {' and '.join(memory)}, which Koordinator does not combine"
        fix = f"keep only {memory[0]} for bytes, or only {memory[1]} for per cent"
    elif parts and not memory and not any(name.startswith(_KOORDINATOR[0]) for name in others):
        message = f"requests {' and '.join(parts)} without an amount of memory, which Koordinator rejects"
        fix = f"add {_KOORDINATOR_MEMORY[0]}"
    if message:
        path = pods.locate(path_of_amount(container, (whole or parts)[0]))
        yield KOORDINATOR_PAIR.problem(path, message, fix)


def _requested_cards(container: Container) -> Iterator[RequestedCards]:
    """Yield the cards that a container requests from HAMi or Volcano."""
    amounts = _amounts(container)
    for number, memory_name, annotation in _NAMES_OF_CARDS:
        memory = amounts.get(memory_name, 0)
        if annotation == HAMI_CARDS and memory > _LARGEST_NUMBER:
            memory = 0  # HAMi counts another number: see check_amounts
        if count := amounts.get(number, 1 if memory else 0):
            yield RequestedCards(
                container, number, memory_name, annotation, count, memory, is_counted=number in amounts
            )


def _check_container(requested: RequestedCards, cards: CardsOfNodes, each: PodsAndNodes) -> Iterator[Problem]:
    count, memory = requested.count, requested.memory
    chosen = f" that `{cards.chosen_by}` allows" if cards.chosen_by else ""
    if cards.most < count and not cards.have_parts:
        of_node = f"{counted(cards.most, 'card')}{chosen} (node {cards.node_with_most})"
        message = f"requests shares of {count} different cards, but no node has more than {of_node}"
        fix = f"request {cards.most}"
        if not cards.most:
            message = f"requests {counted(count, 'card')}, but no node has a card{chosen}"
            fix = "change the annotation of the pod template"
        name = requested.number if requested.is_counted else requested.memory_name
        path = each.pods.locate(path_of_amount(requested.container, name))
        yield CARDS.problem(path, message, fix, count if requested.is_counted else None)
    elif memory and not cards.have_memory(memory, count, each.view.deadline):
        path = each.pods.locate(path_of_amount(requested.container, requested.memory_name))
        message = f"is memory of one card in MiB, but the largest card{chosen} has {cards.largest} MiB, so no card fits"
        fix = f"request at most {cards.largest}, or several cards with less memory each"
        if cards.largest >= memory:
            no_node = f"no node has {count} cards{chosen} with so much memory"
            message = f"is memory of each of the {count} cards in MiB, but {no_node}"
            most = cards.memory_of_each(count, each.view.deadline)
            fix = f"request at most {most}, or fewer cards" if most else "request fewer cards"
        yield CARD_MEMORY.problem(path, message, fix, memory)


def _check_container_of_hami(container: Container, each: PodsAndNodes, subject: Subject) -> Iterator[Problem]:
    amounts = _amounts(container)
    hidden = next((name for name in amounts if is_counted_only_by_hami(name)), "")
    left_alone = why_hami_ignores(container, each, subject)
    if hidden and left_alone:
        reason, fix, is_conditional = left_alone
        name = each.pods.template.spec.scheduler_name
        scheduler = "the default scheduler" if name in _DEFAULT_SCHEDULERS else f"scheduler `{name}`"
        message = f"{reason}, so {scheduler} looks for `{hidden}`, which no node has"
        path = each.pods.locate(path_of_amount(container, hidden))
        yield NOT_TAKEN.problem(path, message, fix, is_conditional=is_conditional)
    elif _HAMI_GPU in amounts and left_alone and _is_never_bound_by_hami(each, subject):
        reason, fix, _ = left_alone
        message = f"{reason}, so HAMi's device plugin gives the pod no GPU, and the pod fails on the node"
        yield NOT_ALLOCATED.problem(each.pods.locate(path_of_amount(container, _HAMI_GPU)), message, fix)
    elif _HAMI_GPU in amounts and _is_privileged(container):
        message = "a privileged container sees every GPU of the node, and HAMi does not count the GPU that it uses"
        path = each.pods.locate(container.path("securityContext", "privileged"))
        yield PRIVILEGED.problem(path, message, "remove `privileged`")


def _is_never_bound_by_hami(each: PodsAndNodes, subject: Subject) -> bool:
    """Return whether HAMi's webhook ignores a pod of the default scheduler, and all nodes for the pod have HAMi's
    device plugin.
    """
    nodes, spec = each.fitting, each.pods.template.spec
    if spec.scheduler_name not in _DEFAULT_SCHEDULERS or not each.view.is_whole(Node.gvk) or not nodes:
        return False
    users = [container for container in spec.all_containers() if any(map(_is_of_hami, _amounts(container)))]
    is_ignored = all(why_hami_ignores(container, each, subject) for container in users)
    return is_ignored and all(HAMI_CARDS in offer.annotations for offer in nodes)


def _check_node_name(each: PodsAndNodes, subject: Subject) -> Iterator[Problem]:
    """Report nodeName in pods with a share of HAMi, unless HAMi's webhook ignores the pods."""
    spec = each.pods.template.spec
    sharing = (
        container
        for container in spec.all_containers()
        if any(map(_is_of_hami, _amounts(container))) and not why_hami_ignores(container, each, subject)
    )
    if spec.node_name and next(sharing, None) is not None:
        message = f"names node {spec.node_name}, but HAMi has to choose node and card, so its webhook refuses the pod"
        yield NODE_NAME.problem(each.pods.locate(spec.path("nodeName")), message, _BY_HOST_NAME)


def _is_of_hami(name: str) -> bool:
    return name == _HAMI_GPU or (name.startswith("nvidia.com/") and is_counted_only_by_hami(name))


class Ignored(NamedTuple):
    """Why the webhook of HAMi ignores a pod, and the fix. With `is_conditional`, the reason names a condition."""

    reason: str
    fix: str
    is_conditional: bool = False


def why_hami_ignores(container: Container, each: PodsAndNodes, subject: Subject) -> Ignored | None:
    """Return why the webhook of HAMi ignores a pod; None if the webhook changes the pod."""
    template = each.pods.template
    if labels_of_namespace(subject).get(_WEBHOOK) == "ignore":
        return Ignored(f"namespace {subject.namespace} is labelled `{_WEBHOOK}: ignore`", _WITHOUT_LABEL)
    if template.metadata.labels.get(_WEBHOOK) == "ignore":
        return Ignored(f"the pod is labelled `{_WEBHOOK}: ignore`", "remove this label")
    if _is_privileged(container):
        return Ignored("HAMi ignores privileged containers", "remove securityContext.privileged")
    name, names = template.spec.scheduler_name, scheduler_names_of_hami(subject.cluster_view())
    if name in _DEFAULT_SCHEDULERS or name in (names or (_SCHEDULER_OF_CHART,)):
        return None
    unless = "" if names else f"unless {_SCHEDULER_NAME} of HAMi is `{name}`, "
    reason = f"{unless}HAMi ignores pods of scheduler `{name}`"
    return Ignored(reason, "remove schedulerName", is_conditional=not names)


def scheduler_names_of_hami(view: ClusterView) -> tuple[str, ...]:
    """Return the names of schedulers in the arguments of HAMi's Deployments; () if no file has such arguments."""
    return view.once(scheduler_names_of_hami, lambda: tuple(_scheduler_names_of_hami(view)))


def _scheduler_names_of_hami(view: ClusterView) -> Iterator[str]:
    for deployment in view.copy_without_missing_objects().list_typed(Deployment):
        for container in deployment.spec.template.spec.containers:
            if not parse_image_name(container.image).is_in_any_registry(HAMI_IMAGE):
                continue
            for word, following in pairwise((*container.command, *container.args, "")):
                flag, separator, value = word.partition("=")
                if flag == _SCHEDULER_NAME and (name := value if separator else following):
                    yield name


def labels_of_namespace(subject: Subject) -> Mapping[str, str]:
    """Return the labels of the request's namespace; no labels if the namespace is not known."""
    view = subject.cluster_view()
    namespace = view.get_without_noting(NAMESPACE, "", subject.namespace)
    return Object.of(namespace, (), ReadingContext(subject.deadline)).metadata.labels


def _is_privileged(container: Container) -> bool:
    return container.security_context.privileged


def _have_memory(cards: tuple[Card, ...], memory: int, count: int) -> bool:
    """Return whether a node has `count` cards with at least `memory` MiB. One card that may be given in parts is
    enough.
    """
    fitting = [card for card in cards if card.memory >= memory]
    return len(fitting) >= count or any(card.has_parts for card in fitting)


def _is_placed_by_volcano(template: PodTemplate, subject: Subject) -> bool:
    return template.spec.scheduler_name == "volcano" or subject.group_kind[0] == "batch.volcano.sh"


def _is_placed_by_default(template: PodTemplate) -> bool:
    return template.spec.scheduler_name in _DEFAULT_SCHEDULERS


def _cards_of_nodes(each: PodsAndNodes, annotation: str) -> CardsOfNodes | None:
    """Return the cards of the nodes that fit a pod, as far as annotations of the pod allow the cards.

    The result is None if no node fits, if a node lists no cards, or if such an annotation has a placeholder.
    """
    of_all = read_cards(IdentityKey(each.view.list_visible_json(Node.gvk)), annotation)
    cards = {offer.name: of_all.get(offer.name, ()) for offer in each.fitting}
    if not cards or not all(cards.values()):
        return None
    written, names = each.pods.template.metadata.annotations, (*_BY_TYPE, *(_BY_ID if annotation == HAMI_CARDS else ()))
    choices = {name: written[name] for name in names if written.get(name, "").strip()}
    if not choices:
        return CardsOfNodes.of(cards)
    if any(map(is_placeholder, choices.values())):
        return None
    wanted = _WantedCards(choices, each.view.deadline)
    shown = (f"{name}: {value}" if len(value) <= _LONGEST_SHOWN else name for name, value in choices.items())
    chosen_by = ", ".join(shown)
    return CardsOfNodes.of({name: tuple(filter(wanted.include, listed)) for name, listed in cards.items()}, chosen_by)


class _WantedCards:
    """The cards that the annotations of a pod allow: a part of the type in any case, or a whole UUID.

    Source: Project-HAMi/HAMi@4707fb02 pkg/device/devices.go CheckType and CheckUUID.
    """

    def __init__(self, choices: Mapping[str, str], deadline: Deadline) -> None:
        self._types = [_words(choices.get(name, "").upper()) for name in _BY_TYPE]
        self._ids = [_words(choices.get(name, "")) for name in _BY_ID]
        self._of_types: dict[str, bool] = {}
        self._deadline = deadline

    def include(self, card: Card) -> bool:
        used, unused = self._ids
        return (not used or card.uuid in used) and card.uuid not in unused and self._include_type(card.type)

    def _include_type(self, name: str) -> bool:
        if name not in self._of_types:
            wanted, unwanted = (
                [word in name.upper() for word in self._deadline.charge_for_items(words)] for words in self._types
            )
            self._of_types[name] = (not wanted or any(wanted)) and not any(unwanted)
        return self._of_types[name]


def _words(listed: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, listed.split(","))))


@lru_cache(maxsize=_KEPT_STATES)
def read_cards(nodes: IdentityKey, annotation: str) -> Mapping[str, tuple[Card, ...]]:
    """Return the cards of each node with an annotation, read once for each state of the cluster."""
    return {offer.name: cards_of_node(offer, annotation) for offer in offers_of_nodes(nodes)}


def cards_of_node(offer: NodeOffer, annotation: str) -> tuple[Card, ...]:
    """Return the cards in an annotation of a node: a list in JSON from HAMi 2.8 on, or items that end with a colon."""
    text = offer.annotations.get(annotation, "")
    if not text.startswith("["):
        return tuple(filter(None, (_card_of_item(item.split(","), annotation) for item in text.split(":"))))
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    read = [RegisteredCard.of(each) for each in (listed if isinstance(listed, list) else ())]
    return tuple(Card(card.devmem, card.mode == _MIG, card.type, card.id) for card in read if card.devmem > 0)


def _card_of_item(fields: list[str], annotation: str) -> Card | None:
    """Return the card of an item with the fields id, count, memory and others; the last field may be the mode."""
    if len(fields) < 5:
        return None
    uuid, _, memory = fields[:3]
    is_of_volcano = annotation == VOLCANO_CARDS
    if not (memory.isdecimal() and memory.isascii() and len(memory) < 10):
        return None
    mode = fields[-1] if is_of_volcano or len(fields) > 8 else ""
    return Card(int(memory), mode == _MIG, fields[3 if is_of_volcano else 4], uuid)


def _amounts(container: Container) -> Mapping[str, int]:
    resources, amounts = container.resources, dict[str, int]()
    for name, value in dict((*resources.requests.items(), *resources.limits.items())).items():
        read = read_quantity_or_none(value) if "/" in name else None
        if read is not None and read.sign() > 0:
            amounts[name] = read.value()
    return amounts
