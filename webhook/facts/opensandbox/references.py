"""What the objects of OpenSandbox and agent-sandbox refer to, and what becomes of shard patches.

A BatchSandbox with poolRef `*` gets the Pool that its template asks for: by images, requests and node selector, as
OpenSandbox's default profile has it (opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/poolassign).
A SandboxClaim names a template (v1alpha1) or a warm pool (v1beta1), a SandboxWarmPool a template
(kubernetes-sigs/agent-sandbox@2fd412d5 extensions/controllers). Pods and patches are shards.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook import quantity
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.facts.opensandbox import shards
from webhook.facts.pods.containers import items, text
from webhook.facts.view import NAMESPACES, View
from webhook.paths import get, parse
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject
from webhook.workloads.podsets import group_kind

POOL = GroupVersionKind("sandbox.opensandbox.io", "v1alpha1", "Pool")
TEMPLATE = GroupVersionKind("extensions.agents.x-k8s.io", "v1beta1", "SandboxTemplate")
WARM_POOL = GroupVersionKind("extensions.agents.x-k8s.io", "v1beta1", "SandboxWarmPool")
LOOKUPS = (
    reading(
        POOL,
        "metadata.labels",
        "spec.capacitySpec.poolMax",
        "spec.template.spec.containers.image",
        "spec.template.spec.containers.resources.requests",
        "spec.template.spec.nodeSelector",
    ),
    reading(TEMPLATE),
    reading(WARM_POOL),
    NAMESPACES,
)

_REFERENCES: Mapping[str, tuple[tuple[str, GroupVersionKind], ...]] = {
    "BatchSandbox": (("spec.poolRef", POOL),),
    "SandboxClaim": (("spec.sandboxTemplateRef.name", TEMPLATE), ("spec.warmPoolRef.name", WARM_POOL)),
    "SandboxWarmPool": (("spec.sandboxTemplateRef.name", TEMPLATE),),
}
_GROUPS = frozenset((POOL.group, TEMPLATE.group))
_CHOOSE = "*"


def sandbox(obj: JSON, view: View) -> JSON:
    """The fact `sandbox` of an object; of other kinds it has nothing to say."""
    group, kind = group_kind(obj)
    own = obj if group in _GROUPS else None
    needing, named = view.of("references"), _REFERENCES.get(kind, ()) if own else ()
    references = [_reference(own, path, wanted, needing) for path, wanted in named]
    is_batch = own is not None and kind == "BatchSandbox"
    chooses = is_batch and get(own, ("spec", "poolRef")) == _CHOOSE
    return {
        "references": [each for each in references if each["name"]],
        "pools": _pools(own, view.of("pools")) if chooses else [],
        "poolsKnown": not chooses or view.is_whole(),
        "notes": list(_notes(own, view.deadline)) if is_batch else [],
    }


def _reference(obj: JSON, path: str, kind: GroupVersionKind, view: View) -> JSON:
    """One object that another names; `most` is how many pods a Pool may have, null where it does not say."""
    name = text(get(obj, parse(path)))
    name = "" if name == _CHOOSE or is_placeholder(name) else name
    referred = view.get(kind, name) if name else None
    absence = _absence(name, kind, view) if name and referred is None else {"absent": False, "nearest": ""}
    most = get(referred, ("spec", "capacitySpec", "poolMax"))
    return {
        "path": path,
        "kind": kind.kind,
        "name": name,
        "found": referred is not None,
        **absence,
        "most": most if isinstance(most, int) and not isinstance(most, bool) else None,
    }


def _absence(name: str, kind: GroupVersionKind, view: View) -> JSON:
    """Whether an object is known not to be there: from a whole cluster, or from files that have others like it."""
    others = [text(get(each, ("metadata", "name"))) for each in _here(kind, view)]
    return {"absent": bool(others) or view.is_whole(), "nearest": view.nearest(name, others)}


def _here(kind: GroupVersionKind, view: View) -> list[JSON]:
    """All objects of a kind in the namespace."""
    objects = view.objects(kind)
    return [
        each for each in objects if (text(get(each, ("metadata", "namespace"))) or view.namespace) == view.namespace
    ]


def _pools(obj: JSON, view: View) -> list[JSON]:
    """What each Pool of the namespace lacks of what the template asks for; nothing where not all Pools are known."""
    if not view.is_whole():
        view.note(MissingObject(kind=POOL.kind, namespace=view.namespace, name="", why="not listed"))
        return []
    template = get(obj, ("spec", "template", "spec"))
    return [
        {"name": text(get(each, ("metadata", "name"))), "lacks": list(_lacks(template, each))}
        for each in view.deadline.paced(_here(POOL, view))
    ]


def _lacks(asked: JSON, pool: JSON) -> Iterator[str]:
    """Why a Pool is not chosen: predicate_image, predicate_resource and predicate_nodeselector of poolassign."""
    offered = get(pool, ("spec", "template", "spec"))
    images, own = ({text(get(each, ("image",))) for each in _containers(spec)} - {""} for spec in (asked, offered))
    if images and images.isdisjoint(own):
        yield f"image {min(images)}"
    wanted, there = _requests(asked), _requests(offered)
    yield from (f"{amount} of {name}" for name, amount in wanted.items() if name not in there or there[name] < amount)
    selected = get(pool, ("metadata", "labels")) or {}
    labels = {**selected, **(get(offered, ("nodeSelector",)) or {})} if isinstance(selected, dict) else {}
    selector = get(asked, ("nodeSelector",))
    for key, value in selector.items() if isinstance(selector, dict) else ():
        if labels.get(key) != value:
            yield f"node selector {key}={value}"


def _containers(spec: JSON) -> list[JSON]:
    return [each for each in items(get(spec, ("containers",))) if isinstance(each, dict)]


def _requests(spec: JSON) -> dict[str, quantity.Quantity]:
    """The requests of all containers together; limits are not looked at."""
    total: dict[str, quantity.Quantity] = {}
    for container in _containers(spec):
        requests = get(container, ("resources", "requests"))
        for name, value in requests.items() if isinstance(requests, dict) else ():
            if (amount := quantity.read(value)) is not None:
                total[name] = total[name].add(amount) if name in total else amount
    return total


def _notes(obj: JSON, deadline: Deadline) -> Iterator[JSON]:
    """What is to be said of each shard patch; with a Pool they are not read."""
    if text(get(obj, ("spec", "poolRef"))):
        return
    template = get(obj, ("spec", "template"))
    made = shards.Template(template, deadline)
    for place, patch in enumerate(deadline.paced(items(get(obj, ("spec", "shardPatches"))))):
        yield from made.notes(patch, ("spec", "shardPatches", place))
