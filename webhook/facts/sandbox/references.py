"""What objects of OpenSandbox and agent-sandbox refer to: Pools, templates and warm pools.

A SandboxClaim names a template (v1alpha1) or a warm pool (v1beta1), a SandboxWarmPool a template
(kubernetes-sigs/agent-sandbox@2fd412d5 extensions/controllers).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from webhook.cluster.interest import interest_in_fields
from webhook.facts.sandbox.groups import SANDBOX_ADVICE
from webhook.facts.sandbox.pool_and_buffer import ANY_POOL, check_any_pool_fits_template, check_pool_size
from webhook.facts.sandbox.types import (
    BatchSandbox,
    Pool,
    Reference,
    SandboxClaim,
    SandboxTemplate,
    SandboxWarmPool,
)
from webhook.facts.view import NAMESPACES, ClusterView
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.objects import Object
from webhook.wording import did_you_mean

REFERENCE_EXISTS: Final = SANDBOX_ADVICE.rule(
    "sandbox/reference-exists",
    title="The Pool, template or warm pool that a sandbox names exists.",
    why="There are no pods until somebody creates it.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/strategy/pool_strategy_default.go",
    fails="pending",
)

LOOKUPS = (
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


def validate_batch_pool(batch: BatchSandbox, view: ClusterView) -> Iterator[Problem]:
    """Check the Pool that a BatchSandbox names, or with poolRef `*` that one fits."""
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
    close = view.nearest_here(name, kind.gvk)
    message = (
        f"names a {kind.gvk.kind} that does not exist in the namespace, so there are no pods until somebody creates it"
    )
    fix = did_you_mean(close, f"create the {kind.gvk.kind}, or correct the name")
    yield REFERENCE_EXISTS.problem(path, message, fix, name)
