"""What objects of OpenSandbox and agent-sandbox refer to: Pools, templates and warm pools.

A BatchSandbox with poolRef `*` gets the Pool that its template asks for: by images, requests and node selector, as
OpenSandbox's default profile has it (opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/poolassign).
A SandboxClaim names a template (v1alpha1) or a warm pool (v1beta1), a SandboxWarmPool a template
(kubernetes-sigs/agent-sandbox@2fd412d5 extensions/controllers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook import quantity
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.opensandbox.batch_sandbox import ANY_POOL, replicas
from webhook.facts.opensandbox.sandbox import EXTENSIONS, OPENSANDBOX, Sandbox, problem
from webhook.facts.subject import Subject
from webhook.facts.values import items, text, whole
from webhook.facts.view import NAMESPACES, View
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.wording import counted, did_you_mean

POOL = GroupVersionKind(OPENSANDBOX, "v1alpha1", "Pool")
TEMPLATE = GroupVersionKind(EXTENSIONS, "v1beta1", "SandboxTemplate")
WARM_POOL = GroupVersionKind(EXTENSIONS, "v1beta1", "SandboxWarmPool")
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

_REFERENCES: Mapping[str, tuple[tuple[FieldPath, GroupVersionKind], ...]] = {
    "BatchSandbox": ((("poolRef",), POOL),),
    "SandboxClaim": ((("sandboxTemplateRef", "name"), TEMPLATE), (("warmPoolRef", "name"), WARM_POOL)),
    "SandboxWarmPool": ((("sandboxTemplateRef", "name"), TEMPLATE),),
}
_MOST_POOLS = 3
"""Pools that a message names."""


def validate_references(sandbox: Sandbox, subject: Subject) -> Iterator[Problem]:
    """Each object that the sandbox names, and with poolRef `*` a Pool that fits."""
    for path, kind in _REFERENCES[subject.group_kind[1]]:
        name = text(get(sandbox.spec, path))
        if name == ANY_POOL and kind is POOL:
            yield from _validate_choice(sandbox, subject.view())
        elif name and not is_placeholder(name):
            yield from _validate_reference(("spec", *path), kind, name, sandbox, subject.view())


def _validate_reference(
    path: FieldPath, kind: GroupVersionKind, name: str, sandbox: Sandbox, view: View
) -> Iterator[Problem]:
    referred = view.get(kind, name)
    if referred is not None:
        most = whole(get(referred, ("spec", "capacitySpec", "poolMax")))
        if kind is POOL and most is not None and most < replicas(sandbox):
            message = f"must not be more than the {counted(most, 'pod')} that Pool `{name}` may have"
            fix = "lower spec.replicas, or raise poolMax of the Pool"
            yield problem("pool-size", ("spec", "replicas"), message, fix, replicas(sandbox))
        return
    # known to be absent from a whole cluster, or from files that have others like it
    others = [text(get(each, ("metadata", "name"))) for each in _here(kind, view)]
    if not others and not view.is_whole():
        yield problem("reference-exists", path, missing=view.missing()[""])
        return
    close = view.nearest(name, others)
    message = (
        f"names a {kind.kind} that does not exist in the namespace, so there are no pods until somebody creates it"
    )
    fix = did_you_mean(close, f"create the {kind.kind}, or correct the name")
    yield problem("reference-exists", path, message, fix, name)


def _validate_choice(sandbox: Sandbox, view: View) -> Iterator[Problem]:
    """A Pool that fits the template, by the default profile of the controller."""
    if not view.is_whole():
        missing = MissingObject(kind=POOL.kind, namespace=view.namespace, name="", why="not listed")
        yield problem("pool-choice", "spec.poolRef", missing=(missing,))
        return
    asked = get(sandbox.spec, ("template", "spec"))
    lacking: list[str] = []
    for each in view.deadline.paced(_here(POOL, view)):
        lacks = " and ".join(_lacks(asked, each))
        if not lacks:
            return
        lacking.append(f"Pool `{text(get(each, ('metadata', 'name')))}` lacks {lacks}")
    why = f" that fits the template ({'; '.join(lacking[:_MOST_POOLS])})" if lacking else ""
    fix = "create a Pool that fits, or change the template" if lacking else "create a Pool"
    yield problem("pool-choice", ("spec", "poolRef"), f"finds no Pool in the namespace{why}", fix, ANY_POOL)


def _here(kind: GroupVersionKind, view: View) -> list[JSON]:
    """All objects of a kind in the namespace."""
    objects, here = view.deadline.paced(view.objects(kind)), view.namespace
    return [each for each in objects if (text(get(each, ("metadata", "namespace"))) or here) == here]


def _lacks(asked: JSON, pool: JSON) -> Iterator[str]:
    """Why a Pool is not chosen: predicate_image, predicate_resource and predicate_nodeselector of poolassign."""
    offered = get(pool, ("spec", "template", "spec"))
    images, own = ({text(get(each, ("image",))) for each in _containers(spec)} - {""} for spec in (asked, offered))
    if images and images.isdisjoint(own):
        yield f"image `{min(images)}`"
    wanted, there = _requests(asked), _requests(offered)
    yield from (f"{amount} {name}" for name, amount in wanted.items() if name not in there or there[name] < amount)
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
