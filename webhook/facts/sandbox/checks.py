"""The checks of objects of OpenSandbox and agent-sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check, group_kinds_of_types
from webhook.facts.sandbox.pools import (
    REFERENCE_LOOKUPS,
    validate_batch_pool,
    validate_claim_references,
    validate_pool_template,
    validate_warm_pool_reference,
    warn_of_conflicting_pool_sizes,
    warn_of_limits_without_requests,
)
from webhook.facts.sandbox.sandbox import (
    advise_ignored_fields,
    advise_windows,
    check_has_template_or_pool,
    validate_claim_names,
)
from webhook.facts.sandbox.shard_patches import validate_shard_devices, validate_shard_patches
from webhook.facts.sandbox.types import BatchSandbox, Pool, Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem

_POD_FIELDS: Final = ("poolRef", "template", "shardPatches")
_TASK_FIELDS: Final = ("taskTemplate", "shardTaskPatches")


def check_batch_sandbox(subject: Subject) -> Iterator[Problem]:
    """Check a BatchSandbox; pause, resume and expiry of a stored one change none of the fields that are validated."""
    batch, old = subject.typed(BatchSandbox), subject.typed_old(BatchSandbox)
    if batch.spec.json and (not old or batch.spec.differs(old.spec, *_POD_FIELDS, *_TASK_FIELDS)):
        yield from check_has_template_or_pool(batch)
    if not old or batch.spec.differs(old.spec, *_POD_FIELDS):
        yield from validate_shard_patches(batch)
        if not batch.spec.pool_ref:
            yield from validate_shard_devices(subject)
    if not old:
        yield from advise_ignored_fields(batch)
        yield from warn_of_limits_without_requests(batch)
        yield from advise_windows(batch.spec.template)


def check_pool(subject: Subject) -> Iterator[Problem]:
    """Check a Pool."""
    pool, old = subject.typed(Pool), subject.typed_old(Pool)
    if not old or pool.spec.differs(old.spec):
        yield from validate_pool_template(pool)
        yield from warn_of_conflicting_pool_sizes(pool)
        if not old:
            yield from advise_windows(pool.spec.template)


def check_pool_reference(subject: Subject) -> Iterator[Problem]:
    """Check that the source of the pods exists. It may be created later, so nothing is denied."""
    batch, old = subject.typed(BatchSandbox), subject.typed_old(BatchSandbox)
    if not old or batch.spec.differs(old.spec):
        yield from validate_batch_pool(batch, subject.cluster_view())


def check_claim_references(subject: Subject) -> Iterator[Problem]:
    """Check that what a claim of agent-sandbox refers to exists."""
    claim, old = subject.typed(SandboxClaim), subject.typed_old(SandboxClaim)
    if not old or claim.spec.differs(old.spec):
        yield from validate_claim_references(claim, subject.cluster_view())


def check_warm_pool_reference(subject: Subject) -> Iterator[Problem]:
    """Check that what a warm pool of agent-sandbox refers to exists."""
    pool, old = subject.typed(SandboxWarmPool), subject.typed_old(SandboxWarmPool)
    if not old or pool.spec.differs(old.spec):
        yield from validate_warm_pool_reference(pool, subject.cluster_view())


def check_agent_sandbox(subject: Subject) -> Iterator[Problem]:
    """Check a Sandbox or SandboxTemplate of agent-sandbox."""
    sandbox, old = subject.typed(Sandbox), subject.typed_old(Sandbox)
    if not old or sandbox.spec.differs(old.spec):
        yield from validate_claim_names(sandbox)


CHECKS: Final = (
    Check(group="sandbox", run=check_batch_sandbox, kinds=group_kinds_of_types(BatchSandbox)),
    Check(group="sandbox", run=check_pool, kinds=group_kinds_of_types(Pool)),
    Check(
        group="sandbox", run=check_pool_reference, kinds=group_kinds_of_types(BatchSandbox), lookups=REFERENCE_LOOKUPS
    ),
    Check(
        group="sandbox", run=check_claim_references, kinds=group_kinds_of_types(SandboxClaim), lookups=REFERENCE_LOOKUPS
    ),
    Check(
        group="sandbox",
        run=check_warm_pool_reference,
        kinds=group_kinds_of_types(SandboxWarmPool),
        lookups=REFERENCE_LOOKUPS,
    ),
    Check(group="sandbox", run=check_agent_sandbox, kinds=group_kinds_of_types(Sandbox, SandboxTemplate)),
)
