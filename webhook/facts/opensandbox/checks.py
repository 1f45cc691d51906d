"""The checks of objects of OpenSandbox and agent-sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.opensandbox.agent_sandbox import validate_claim_names
from webhook.facts.opensandbox.batch_sandbox import advise_ignored_fields, advise_requests, validate_pods
from webhook.facts.opensandbox.pool import advise_capacity, validate_pool_template
from webhook.facts.opensandbox.references import LOOKUPS, validate_references
from webhook.facts.opensandbox.sandbox import AGENTS, EXTENSIONS, OPENSANDBOX, read_sandbox
from webhook.facts.opensandbox.shard_validation import validate_shard_devices, validate_shard_patches
from webhook.facts.opensandbox.windows import advise_windows
from webhook.facts.subject import Subject
from webhook.problem import Problem

_PODS: Final = ("poolRef", "template", "shardPatches")
_TASKS: Final = ("taskTemplate", "shardTaskPatches")


def batch_sandbox(subject: Subject) -> Iterator[Problem]:
    """A BatchSandbox: pause, resume and expiry of a stored one change none of the fields that are validated."""
    batch = subject.once(read_sandbox)
    if batch.spec and batch.changes(*_PODS, *_TASKS):
        yield from validate_pods(batch)
    if batch.changes(*_PODS):
        yield from validate_shard_patches(batch)
        if not batch.spec.get("poolRef"):
            yield from validate_shard_devices(subject)
    if batch.old is None:
        yield from advise_ignored_fields(batch)
        yield from advise_requests(batch)
        yield from advise_windows(batch)


def pool(subject: Subject) -> Iterator[Problem]:
    """A Pool."""
    read = subject.once(read_sandbox)
    if read.changes_at_all():
        yield from validate_pool_template(read)
        yield from advise_capacity(read)
        if read.old is None:
            yield from advise_windows(read)


def references(subject: Subject) -> Iterator[Problem]:
    """What must be there for pods to be had. It may come later, so nothing is denied."""
    read = subject.once(read_sandbox)
    if read.changes_at_all():
        yield from validate_references(read, subject)


def agent_sandbox(subject: Subject) -> Iterator[Problem]:
    """A Sandbox or SandboxTemplate of agent-sandbox."""
    read = subject.once(read_sandbox)
    if read.changes_at_all():
        yield from validate_claim_names(read)


_BATCH: Final = (OPENSANDBOX, "BatchSandbox")
CHECKS: Final = (
    Check(group="sandbox", run=batch_sandbox, kinds=frozenset((_BATCH,))),
    Check(group="sandbox", run=pool, kinds=frozenset(((OPENSANDBOX, "Pool"),))),
    Check(
        group="sandbox",
        run=references,
        kinds=frozenset((_BATCH, (EXTENSIONS, "SandboxClaim"), (EXTENSIONS, "SandboxWarmPool"))),
        lookups=LOOKUPS,
    ),
    Check(group="sandbox", run=agent_sandbox, kinds=frozenset(((AGENTS, "Sandbox"), (EXTENSIONS, "SandboxTemplate")))),
)
