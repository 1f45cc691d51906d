"""What objects of OpenSandbox and agent-sandbox refer to: Pools, templates and warm pools.

A BatchSandbox with poolRef `*` gets the Pool that its template asks for: by images, requests and node selector, as
OpenSandbox's default profile has it (opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/poolassign).
A SandboxClaim names a template (v1alpha1) or a warm pool (v1beta1), a SandboxWarmPool a template
(kubernetes-sigs/agent-sandbox@2fd412d5 extensions/controllers).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from webhook import quantity
from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.opensandbox.batch_sandbox import ANY_POOL
from webhook.facts.opensandbox.types import (
    BatchSandbox,
    Pool,
    Reference,
    SandboxClaim,
    SandboxTemplate,
    SandboxWarmPool,
)
from webhook.facts.view import NAMESPACES, View
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.typed.objects import Object
from webhook.typed.pods import PodSpec
from webhook.wording import counted, did_you_mean

problem = Group("sandbox").problem
LOOKUPS = (
    reading(
        Pool.gvk,
        "metadata.labels",
        "spec.capacitySpec.poolMax",
        "spec.template.spec.containers.image",
        "spec.template.spec.containers.resources.requests",
        "spec.template.spec.nodeSelector",
    ),
    reading(SandboxTemplate.gvk),
    reading(SandboxWarmPool.gvk),
    NAMESPACES,
)
Whole = TypeVar("Whole", bound=Object)
_MOST_POOLS = 3
"""Pools that a message names."""


def validate_pool_reference(batch: BatchSandbox, view: View) -> Iterator[Problem]:
    """The Pool that a BatchSandbox names, or with poolRef `*` one that fits."""
    name = batch.spec.pool_ref
    if name == ANY_POOL:
        yield from _pool_choice(batch, view)
    elif name and not is_placeholder(name):
        pool = view.find(Pool, name)
        yield from _pool_size(batch, pool) if pool else _reference_exists(batch.spec.path("poolRef"), Pool, name, view)


def validate_claim_references(claim: SandboxClaim, view: View) -> Iterator[Problem]:
    """The template or the warm pool that a claim names."""
    yield from _validate_reference(claim.spec.sandbox_template_ref, SandboxTemplate, view)
    yield from _validate_reference(claim.spec.warm_pool_ref, SandboxWarmPool, view)


def validate_warm_pool_reference(pool: SandboxWarmPool, view: View) -> Iterator[Problem]:
    """The template that a warm pool names."""
    yield from _validate_reference(pool.spec.sandbox_template_ref, SandboxTemplate, view)


def _validate_reference(reference: Reference, kind: type[Object], view: View) -> Iterator[Problem]:
    name = reference.name
    if name and not is_placeholder(name) and not view.find(kind, name):
        yield from _reference_exists(reference.path("name"), kind, name, view)


def _pool_size(batch: BatchSandbox, pool: Pool) -> Iterator[Problem]:
    most, replicas = pool.spec.capacity_spec.pool_max, batch.spec.replicas
    if most is not None and most < replicas:
        message = f"must not be more than the {counted(most, 'pod')} that Pool `{pool.name}` may have"
        fix = "lower spec.replicas, or raise poolMax of the Pool"
        yield problem("pool-size", batch.spec.path("replicas"), message, fix, replicas)


def _reference_exists(path: FieldPath, kind: type[Object], name: str, view: View) -> Iterator[Problem]:
    # known to be absent from a whole cluster, or from files that have others like it
    others = [other.name for other in _in_namespace(kind, view)]
    if not others and not view.is_whole():
        yield problem("reference-exists", path, missing=view.missing()[""])
        return
    close = view.nearest(name, others)
    message = (
        f"names a {kind.gvk.kind} that does not exist in the namespace, so there are no pods until somebody creates it"
    )
    fix = did_you_mean(close, f"create the {kind.gvk.kind}, or correct the name")
    yield problem("reference-exists", path, message, fix, name)


def _pool_choice(batch: BatchSandbox, view: View) -> Iterator[Problem]:
    """A Pool that fits the template, by the default profile of the controller."""
    path = batch.spec.path("poolRef")
    if not view.is_whole():
        missing = MissingObject(kind=Pool.gvk.kind, namespace=view.namespace, name="", why="not listed")
        yield problem("pool-choice", path, missing=(missing,))
        return
    lacking: list[str] = []
    for pool in _in_namespace(Pool, view):
        lacks = " and ".join(_lacks(batch.spec.template.spec, pool))
        if not lacks:
            return
        lacking.append(f"Pool `{pool.name}` lacks {lacks}")
    why = f" that fits the template ({'; '.join(lacking[:_MOST_POOLS])})" if lacking else ""
    fix = "create a Pool that fits, or change the template" if lacking else "create a Pool"
    yield problem("pool-choice", path, f"finds no Pool in the namespace{why}", fix, ANY_POOL)


def _in_namespace(kind: type[Whole], view: View) -> list[Whole]:
    """All objects of a kind in the namespace of the request."""
    return [obj for obj in view.every(kind) if (obj.namespace or view.namespace) == view.namespace]


def _lacks(wanted: PodSpec, pool: Pool) -> Iterator[str]:
    """Why a Pool is not chosen: predicate_image, predicate_resource and predicate_nodeselector of poolassign."""
    offered = pool.spec.template.spec
    images = {container.image for container in wanted.containers} - {""}
    if images and images.isdisjoint(container.image for container in offered.containers):
        yield f"image `{min(images)}`"
    requests, there = _requests(wanted), _requests(offered)
    yield from (f"{amount} {name}" for name, amount in requests.items() if name not in there or there[name] < amount)
    labels = {**pool.metadata.labels, **offered.node_selector}
    for key, value in wanted.node_selector.items():
        if labels.get(key) != value:
            yield f"node selector {key}={value}"


def _requests(pod: PodSpec) -> dict[str, quantity.Quantity]:
    """The requests of all containers together; limits are not looked at."""
    total: dict[str, quantity.Quantity] = {}
    for container in pod.containers:
        for name, value in container.resources.requests.items():
            if (amount := quantity.read(value)) is not None:
                total[name] = total[name].add(amount) if name in total else amount
    return total
