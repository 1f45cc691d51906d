"""References of a BatchSandbox, a SandboxClaim or a warm pool, and the sizes and template of a Pool of OpenSandbox.

For a BatchSandbox with poolRef `*`, OpenSandbox's default profile chooses a Pool by the images, requests and node
selector of the BatchSandbox's template. A SandboxClaim names a template (v1alpha1) or a warm pool (v1beta1). A
SandboxWarmPool names a template.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/pool_controller.go and poolassign;
kubernetes-sigs/agent-sandbox@2fd412d5 extensions/controllers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.sandbox.types import (
    SANDBOX,
    SANDBOX_ADVICE,
    BatchSandbox,
    Pool,
    Reference,
    SandboxClaim,
    SandboxTemplate,
    SandboxWarmPool,
)
from webhook.facts.view import NAMESPACES, ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import counted, did_you_mean
from webhook.typed.objects import Object
from webhook.typed.pods import PodSpec, Resources
from webhook.yamltext.placeholders import is_placeholder

POOL_TEMPLATE: Final = SANDBOX.rule(
    "sandbox/pool-template",
    title="The Pool has no template",
    why="The Pool creates its pods from the template.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/pool_controller.go",
    function="createPoolPod",
)
BUFFER_RANGE: Final = SANDBOX_ADVICE.rule(
    "sandbox/buffer-range",
    title="bufferMin is above bufferMax",
    why="The controller uses the mean of both numbers instead.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/pool_controller.go",
    severity="low",
)
POOL_RANGE: Final = SANDBOX_ADVICE.rule(
    "sandbox/pool-range",
    title="poolMin is above poolMax",
    why="The Pool never grows beyond poolMax.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/pool_controller.go",
    severity="low",
)
BUFFER_ABOVE_POOL: Final = SANDBOX_ADVICE.rule(
    "sandbox/buffer-above-pool",
    title="bufferMin is above poolMax",
    why="The Pool reaches poolMax before its buffer is full.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/pool_controller.go",
    severity="low",
)
POOL_SIZE: Final = SANDBOX_ADVICE.rule(
    "sandbox/pool-size",
    title="The BatchSandbox has more replicas than the Pool may have pods",
    why="A Pool creates at most poolMax pods, so some replicas never get a pod.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/pool_controller.go",
    fails="pending",
)
POOL_CHOICE: Final = SANDBOX_ADVICE.rule(
    "sandbox/pool-choice",
    title="No Pool fits the template",
    why="The controller compares images, requests and the node selector, and waits for a Pool that fits.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/poolassign",
    fails="pending",
)
IGNORED_WITH_POOL: Final = SANDBOX_ADVICE.rule(
    "sandbox/ignored-with-pool",
    title="The template has no effect together with a Pool",
    why="The BatchSandbox gets pods of the Pool unchanged, so its template and patches have no effect.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/strategy/pool_strategy_default.go",
)
LIMITS_CHOOSE_NO_POOL: Final = SANDBOX_ADVICE.rule(
    "sandbox/limits-choose-no-pool",
    title="A limit without a request does not choose a Pool",
    why="The controller compares requests when it chooses a Pool, and it does not read limits.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/poolassign/predicate_resource.go",
)
REFERENCE_EXISTS: Final = SANDBOX_ADVICE.rule(
    "sandbox/reference-exists",
    title="The Pool, template or warm pool does not exist",
    why="No pod is created until the object exists.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/strategy/pool_strategy_default.go",
    fails="pending",
)
ANY_POOL: Final = "*"
"""With this poolRef, the controller uses the template of a BatchSandbox only to choose a Pool that fits."""
REFERENCE_LOOKUPS = (
    interest_in_fields(
        Pool.gvk,
        "metadata.labels",
        "spec.capacitySpec.poolMax",
        "spec.template.spec.containers.image",
        "spec.template.spec.containers.resources.requests",
        "spec.template.spec.nodeSelector",
    ),
    interest_in_fields(SandboxTemplate.gvk),
    interest_in_fields(SandboxWarmPool.gvk),
    NAMESPACES,
)
Whole = TypeVar("Whole", bound=Object)
_MOST_POOLS = 3
"""The most Pools that a message names."""


def validate_pool_template(pool: Pool) -> Iterator[Problem]:
    """Require a template in a Pool that may have pods."""
    capacity = pool.spec.capacity_spec
    if not pool.spec.has("template") and capacity and capacity.pool_max != 0:
        message = "is not set, but the Pool creates its pods from this template"
        yield POOL_TEMPLATE.problem(pool.spec.path("template"), message, "set a pod template")


def warn_of_conflicting_pool_sizes(pool: Pool) -> Iterator[Problem]:
    """Warn of sizes of a Pool that contradict each other."""
    capacity = pool.spec.capacity_spec
    least, most = capacity.buffer_min, capacity.buffer_max
    smallest, largest = capacity.pool_min, capacity.pool_max
    if least is None or most is None or smallest is None or largest is None:
        return
    if least > most:
        message = (
            f"must not be above bufferMax, which is {most}, because the controller would then keep the mean of both "
            "numbers"
        )
        yield BUFFER_RANGE.problem(capacity.path("bufferMin"), message, "lower bufferMin, or raise bufferMax", least)
    message = f"must not be above poolMax, which is {largest}, because the Pool never grows beyond poolMax"
    if smallest > largest:
        yield POOL_RANGE.problem(capacity.path("poolMin"), message, "lower poolMin, or raise poolMax", smallest)
    if least > largest:
        fix = "lower bufferMin, or raise poolMax"
        yield BUFFER_ABOVE_POOL.problem(capacity.path("bufferMin"), message, fix, least)


def validate_batch_pool(batch: BatchSandbox, view: ClusterView) -> Iterator[Problem]:
    """Check the Pool that a BatchSandbox names; with poolRef `*`, check that a Pool fits."""
    name = batch.spec.pool_ref
    if name == ANY_POOL:
        yield from check_any_pool_fits_template(batch, view)
    elif name and not is_placeholder(name):
        pool = view.find(Pool, name)
        if pool:
            yield from check_pool_size(batch, pool, f"Pool `{name}`{view.file_of_object_as_text(pool.json)}")
        else:
            yield from _check_reference_exists(batch.spec.path("poolRef"), Pool, name, view)


def validate_claim_references(claim: SandboxClaim, view: ClusterView) -> Iterator[Problem]:
    """Check the template or the warm pool that a claim names."""
    yield from _validate_reference(claim.spec.sandbox_template_ref, SandboxTemplate, view)
    yield from _validate_reference(claim.spec.warm_pool_ref, SandboxWarmPool, view)


def validate_warm_pool_reference(pool: SandboxWarmPool, view: ClusterView) -> Iterator[Problem]:
    """Check the template that a warm pool names."""
    yield from _validate_reference(pool.spec.sandbox_template_ref, SandboxTemplate, view)


def _validate_reference(reference: Reference, kind: type[Object], view: ClusterView) -> Iterator[Problem]:
    name = reference.name
    if name and not is_placeholder(name) and not view.find(kind, name):
        yield from _check_reference_exists(reference.path("name"), kind, name, view)


def _check_reference_exists(path: FieldPath, kind: type[Object], name: str, view: ClusterView) -> Iterator[Problem]:
    if not view.is_whole(kind.gvk):
        yield REFERENCE_EXISTS.problem(path, missing=view.missing_objects_by_field()[""])
        return
    nearest = view.nearest_here(name, kind.gvk)
    message = f"names a {kind.gvk.kind} that does not exist in the namespace, so no pod is created"
    fix = did_you_mean(nearest, f"create the {kind.gvk.kind}, or correct the name")
    yield REFERENCE_EXISTS.problem(path, message, fix, name)


def check_pool_size(batch: BatchSandbox, pool: Pool, pool_name: str) -> Iterator[Problem]:
    """Report a BatchSandbox with more replicas than the Pool may have pods."""
    most, replicas = pool.spec.capacity_spec.pool_max, batch.spec.replicas
    if most is not None and most < replicas:
        message = f"must not be more than the {counted(most, 'pod')} that {pool_name} may have"
        fix = "lower spec.replicas, or raise poolMax of the Pool"
        yield POOL_SIZE.problem(batch.spec.path("replicas"), message, fix, replicas)


def check_any_pool_fits_template(batch: BatchSandbox, view: ClusterView) -> Iterator[Problem]:
    """Report a template that no Pool fits, according to the controller's default profile."""
    path = batch.spec.path("poolRef")
    lacking: list[str] = []
    for pool in view.typed_here(Pool) if view.is_whole(Pool.gvk) else ():
        lacks = " and ".join(_reasons_not_to_choose_pool(batch.spec.template.spec, pool))
        if not lacks:
            return
        if len(lacking) < _MOST_POOLS:
            lacking.append(f"Pool `{pool.name}` lacks {lacks}")
    if not view.is_whole(Pool.gvk):
        missing = MissingObject(kind=Pool.gvk.kind, namespace=view.namespace, name="", why="not listed")
        yield POOL_CHOICE.problem(path, missing=(missing,))
        return
    why = f" that fits the template ({'; '.join(lacking)})" if lacking else ""
    fix = "create a Pool that fits, or change the template" if lacking else "create a Pool"
    yield POOL_CHOICE.problem(path, f"finds no Pool in the namespace{why}", fix, ANY_POOL)


def _reasons_not_to_choose_pool(wanted: PodSpec, pool: Pool) -> Iterator[str]:
    """Yield what a Pool lacks for a template (predicate_image, predicate_resource, predicate_nodeselector)."""
    offered = pool.spec.template.spec
    images = {container.image for container in wanted.containers} - {""}
    if images and images.isdisjoint(container.image for container in offered.containers):
        yield f"image `{min(images)}`"
    requests, offered_requests = _sum_of_requests(wanted), _sum_of_requests(offered)
    yield from (
        f"{amount} {name}"
        for name, amount in requests.items()
        if name not in offered_requests or offered_requests[name] < amount
    )
    labels = {**pool.metadata.labels, **offered.node_selector}
    for key, value in wanted.node_selector.items():
        if labels.get(key) != value:
            yield f"node selector {key}={value}"


def _sum_of_requests(pod: PodSpec) -> dict[str, quantity.Quantity]:
    """Add up the requests of the containers, without init containers. Limits are ignored."""
    total: dict[str, quantity.Quantity] = {}
    for container in pod.containers:
        for name, value in container.resources.requests.items():
            if (amount := quantity.read_quantity_or_none(value)) is not None:
                total[name] = total[name].add(amount) if name in total else amount
    return total


def warn_of_fields_ignored_with_pool(batch: BatchSandbox) -> Iterator[Problem]:
    """Warn of fields of a BatchSandbox that have no effect on the pods of a Pool."""
    spec, pool = batch.spec, batch.spec.pool_ref
    for name in () if not pool else ("shardPatches",) if pool == ANY_POOL else ("template", "shardPatches"):
        if spec.is_omitted(name) or spec.json.get(name):  # an empty field does not count
            message = f"is ignored because spec.poolRef `{pool}` takes ready pods from a Pool"
            yield IGNORED_WITH_POOL.problem(spec.path(name), message, "change the Pool instead, or remove poolRef")


def warn_of_limits_without_requests(batch: BatchSandbox) -> Iterator[Problem]:
    """With poolRef `*`, warn of limits without requests: predicate_resource.go of poolassign adds up only requests."""
    if batch.spec.pool_ref == ANY_POOL:
        for container in batch.spec.template.spec.containers:
            yield from _check_limits_without_requests(container.resources)


def _check_limits_without_requests(resources: Resources) -> Iterator[Problem]:
    for name in resources.limits:
        if "/" in name and name not in resources.requests:
            message = "does not choose a Pool because spec.poolRef `*` compares only requests"
            yield LIMITS_CHOOSE_NO_POOL.problem(resources.path("limits", name), message, "set the request too")
