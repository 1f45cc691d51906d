"""Whether an object that was not found is certainly not there: a whole cluster lacks it, a few files say nothing."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.facts.view import View


def lacks(view: View, kind: GroupVersionKind, name: str) -> bool:
    """Whether a cluster-scoped object is known not to be there; what is not known is noted in the view."""
    return view.get(kind, name, namespaced=False) is None and view.is_whole(kind)
