"""Whether an object that was not found is certainly not there: a whole cluster lacks it, a few files say little."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.facts.view import View


def is_absent(view: View, kind: GroupVersionKind, namespace: str | None = None) -> bool:
    """Whether an object of a kind that was not found is certainly not there.

    A whole cluster lacks it; so do files that have others of its kind, for who writes some of them down has all.
    """
    return bool(view.unnoted().all(kind, namespace)) or view.is_whole()


def lacks(view: View, kind: GroupVersionKind, name: str) -> bool:
    """Whether a cluster-scoped object is known not to be there; what is not known is noted in the view."""
    return view.get(kind, name, namespaced=False) is None and is_absent(view, kind)
