"""Whether an update changes anything that checks of queues and queued jobs read.

An object that is older than the webhook or a rule may break the rule. Controllers must still be able to write the
object's status, finalizers and labels, and users must be able to delete the object.
"""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.facts.subject import Subject
from webhook.typed.objects import Object

_UNREAD: Final = frozenset(("metadata", "status", "apiVersion"))
_READ: Final = ("kueue", "volcano")
"""Checks read labels and annotations with one of these texts in the key: kueue.x-k8s.io, scheduling.volcano.sh."""


def changes_fields_that_checks_read(subject: Subject) -> bool:
    """Return whether an object is new, or an update changes a field, an owner, a label or an annotation that checks
    read.
    """
    if not subject.object or not subject.old_object:
        return True
    now, old = subject.typed(Object), subject.typed_old(Object)
    subject.deadline.spend(len(now.json) + len(old.json))
    return bool(
        _fields_that_checks_read(now) != _fields_that_checks_read(old)
        or _metadata_that_checks_read(now) != _metadata_that_checks_read(old)
    )


def _fields_that_checks_read(obj: Object) -> JSON:
    return {name: value for name, value in obj.json.items() if name not in _UNREAD}


def _metadata_that_checks_read(obj: Object) -> JSON:
    """Return the metadata that checks read: the owners of the object, its labels and annotations."""
    marked = (obj.labels, obj.annotations)
    read = [{key: text for key, text in each.items() if any(word in key for word in _READ)} for each in marked]
    return [obj.metadata.json.get("ownerReferences"), *read]
