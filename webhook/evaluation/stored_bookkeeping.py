"""Which updates only change bookkeeping fields of an object. Only native policies, and policies that
name these fields, are evaluated on these updates.

If a policy refuses such updates of objects that are older than the policy, a Pod that is being deleted keeps its
finalizer, and a Job never ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON, Operation
from webhook.deadline import Deadline
from webhook.errors import UnreadPartError
from webhook.evaluation.request_context import RequestContext
from webhook.policy.compiled import BOOKKEEPING, Policy

_OF_SERVER: Final = frozenset(("resourceVersion", "generation"))
"""Fields of metadata that the API server sets."""


def is_bookkeeping(context: RequestContext, policy: Policy) -> bool:
    """Return whether an update is of an object that is being deleted, or changes only fields of BOOKKEEPING that a
    policy does not name.
    """
    attributes = context.attributes
    if attributes.operation is not Operation.UPDATE:
        return False
    new, old = attributes.object, attributes.old_object
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return False
    changed = changed_bookkeeping(new, old, context.deadline)
    return changed is not None and changed.isdisjoint(policy.named_bookkeeping)


def changed_bookkeeping(new: JSON, old: JSON, deadline: Deadline) -> frozenset[str] | None:
    """Return the fields of BOOKKEEPING that differ, or none for an object that is being deleted; None if other fields
    differ as well.
    """
    metadata, before = new.get("metadata"), old.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(before, Mapping):
        return None
    if metadata.get("deletionTimestamp") is not None and before.get("deletionTimestamp") is not None:
        return frozenset()
    try:
        changed = {*_different_keys(new, old, deadline)} - {"metadata"} | {*_different_keys(metadata, before, deadline)}
    except UnreadPartError:  # which may have changed
        return None
    return frozenset(changed - _OF_SERVER) if changed <= BOOKKEEPING | _OF_SERVER else None


def _different_keys(new: Mapping[str, JSON], old: Mapping[str, JSON], deadline: Deadline) -> frozenset[str]:
    keys = deadline.charge_for_items([*new, *(key for key in old if key not in new)])
    return frozenset(key for key in keys if key not in new or key not in old or new[key] != old[key])
