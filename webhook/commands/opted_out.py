"""Finds namespaces and objects that a label excludes from reviews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from webhook.cluster.live_objects import objects_of_kind, served_kinds
from webhook.errors import LookupFailed
from webhook.export.lockout import Namespaces
from webhook.manifests.label_selectors import compile_selector
from webhook.manifests.webhook_configurations import WebhookConfiguration
from webhook.text.wording import counted, some_of

if TYPE_CHECKING:
    from webhook.commands.enforcing import ClusterReader

OPT_OUT: Final = ("claimgate.dev/admission", "disabled")
"""The label that excludes a namespace from reviews. With --object-opt-out, the label also excludes an object."""
_SHOWN: Final = 20


def notes_about_opt_out(
    cluster: ClusterReader, ours: Sequence[WebhookConfiguration], namespaces: Namespaces
) -> Iterator[str]:
    """Yield notes about the namespaces and objects with the label, and about its effect."""
    key, value = OPT_OUT
    written = f"{key}={value}"
    labelled = sorted(name for name, labels in namespaces.items() if labels.get(key) == value)
    if labelled:
        number = counted(len(labelled), "namespace")
        names = some_of(labelled, _SHOWN)
        yield f"note: API servers do not call claimgate for {number} with the label {written}: {names}"
    wanted = {
        (group, resource.partition("/")[0])
        for each in ours
        for webhook in each.webhooks
        for rule in webhook.rules
        for group in rule.api_groups
        for resource in rule.resources
    }
    selectors = [compile_selector(one.object_selector) for each in ours for one in each.webhooks]
    counts = any(not each.matches({key: value}) for each in selectors)
    effect = "excludes them" if counts else "has no effect on objects"
    labelled_objects: list[str] = []
    try:
        for kind in served_kinds(cluster.connection, wanted):
            selected = objects_of_kind(cluster.connection, kind, selector=written)
            labelled_objects += [f"{kind.kind.kind} {_place(obj['metadata'])}" for obj in selected]
    except LookupFailed as error:
        yield f"note: which objects have the label {written} is not known: {error}"
    if labelled_objects:
        number = counted(len(labelled_objects), "object")
        yield f"note: {number} with the label {written}, which {effect}: {some_of(labelled_objects, _SHOWN)}"


def _place(metadata: dict[str, str]) -> str:
    return "/".join(filter(None, (metadata.get("namespace", ""), metadata["name"])))
