"""Whether an update changes anything that checks of queues and queued jobs read.

An object that breaks a rule may be stored: it is older than the webhook, or than the rule. Its controllers still write
its status, its finalizers and their own labels, and whoever wants to be rid of it deletes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.attributes import JSON
from webhook.facts.subject import Subject

_UNREAD: Final = frozenset(("metadata", "status", "apiVersion"))
_READ: Final = ("kueue", "volcano")
"""What a label or an annotation that one of the checks reads has in its key: kueue.x-k8s.io, scheduling.volcano.sh."""


def changes_what_is_read(subject: Subject) -> bool:
    """Whether an object is new, or differs from what it was in more than its status and its bookkeeping."""
    now, old = subject.object, subject.old_object
    if not isinstance(now, dict) or not isinstance(old, dict):
        return True
    subject.deadline.spend(len(now) + len(old))
    return bool(_fields(now) != _fields(old) or _marks(now) != _marks(old))


def _fields(obj: Mapping[str, Any]) -> JSON:
    return {name: value for name, value in obj.items() if name not in _UNREAD}


def _marks(obj: Mapping[str, Any]) -> JSON:
    """Of the metadata what checks read: who owns the object, and labels and annotations."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return None
    marked = (metadata.get("labels"), metadata.get("annotations"))
    return [metadata.get("ownerReferences"), *(_read(each) for each in marked)]


def _read(marked: JSON) -> JSON:
    keys: Iterable[str] = marked if isinstance(marked, dict) else ()
    return {key: marked[key] for key in keys if any(word in key for word in _READ)}
