"""Decides which webhooks to register for a phase.

Most objects that a cluster creates are Pods, or objects of built-in kinds that create Pods. Few of these have a device,
a claim or a queue. So each place of a pod template has a separate webhook, with matchConditions from the policies.
Other resources have two webhooks. One webhook gets no updates of bookkeeping fields. The other webhook gets every
update, for policies that need every update. No resource is in two webhooks, so each request causes one call.

The annotation `concerns` of a policy names the parts of an object that the policy is about. matchConditions check for
these parts, and API servers do not send other objects. Objects of built-in kinds have the right types, so no expression
can fail. Absent fields are read with `?`. Lists and maps that Go may encode as null are compared with null.

No expression may exceed its cost limit. With failurePolicy Ignore, API servers would skip the webhook, and a user could
create an object that no policy checks. So each expression first compares sizes, and is true if something is large. It
reads a text or walks a list only after this comparison. `tests/export/test_condition_costs.py` checks that the estimate
for any request is within the limits (k8s.io/apiserver v0.36 pkg/apis/cel/config.go): a million for an expression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import Phase
from webhook.export.webhook_rules import (
    MatchedResource,
    WebhookRule,
    matched_resources_of_policies,
    merge_into_webhook_rules,
)
from webhook.policy.compiled import BOOKKEEPING, Policy
from webhook.policy.policy_set import PolicySet

_CONTAINERS: Final = 8
_WORDS: Final = 16
_WORD: Final = 256
_IMAGE: Final = 256
_ENTRIES: Final = 64
_NAME: Final = 64
_VALUE: Final = 64
_KEY: Final = 317
_QUANTITY: Final = 64
_FIELDS: Final = 32
_FIELD: Final = 64
"""Limits for what expressions walk or read, in this order:

- containers of a list, words of a command, characters of a word, characters of an image
- variables, labels or annotations; characters of a variable's name, and of its value
- characters of a label's key (253 for the domain, a slash, 63), and of a quantity
- fields of an object or of its metadata, characters of a field's name

Ordinary Pods are below the limits."""
_AMOUNTS: Final = '["cpu", "memory", "ephemeral-storage"]'
_NUMBER_OF_AMOUNTS: Final = 3
_LAUNCHERS: Final = "torch|accel|deepsp|\\\\bds\\\\b"
"""Matches the beginnings of the launchers of webhook/facts/launch. The pattern is short, because a match costs the
length of the text times the length of the pattern."""
_VARIABLES: Final = "RANK|TF_CONF|MASTER_A|WORLD_S|BLE_DEV"
"""Parts of RANK, TF_CONFIG, MASTER_ADDR, WORLD_SIZE and of variables that end in VISIBLE_DEVICES."""
_IMAGES: Final = "cuda|nvidia|-gpu|rocm"
"""Matches every image of `images` in webhook/facts/gpu/devices.yaml, and other images."""
NOT_A_MIRROR: Final = (
    "not-a-mirror-pod",
    (
        '!(object.?metadata.?annotations[?"kubernetes.io/config.mirror"].hasValue()) || '
        "request.userInfo.?groups.orValue([]).size() > 1000 || "
        '!("system:nodes" in request.userInfo.?groups.orValue([]))'
    ),
)
"""Excludes mirror Pods. A kubelet creates mirror Pods to show static Pods, which already run."""


class PodLocation(NamedTuple):
    """Expressions for the PodSpec, and for the metadata of the object `o` and of its templates."""

    name: str
    spec: str
    metadata: tuple[str, ...]
    resources: frozenset[tuple[str, str]]


_TEMPLATE: Final = "o.?spec.?template"
_CRON: Final = "o.?spec.?jobTemplate"
PLACES: Final = (
    PodLocation("pods", "o.?spec", ("o.?metadata",), frozenset((("", "pods"),))),
    PodLocation(
        "templates",
        f"{_TEMPLATE}.?spec",
        ("o.?metadata", f"{_TEMPLATE}.?metadata"),
        frozenset(
            (
                *(("apps", name) for name in ("daemonsets", "deployments", "replicasets", "statefulsets")),
                ("batch", "jobs"),
                ("", "replicationcontrollers"),
            )
        ),
    ),
    PodLocation(
        "cronjobs",
        f"{_CRON}.?spec.?template.?spec",
        ("o.?metadata", f"{_CRON}.?metadata", f"{_CRON}.?spec.?template.?metadata"),
        frozenset((("batch", "cronjobs"),)),
    ),
    PodLocation(
        "podtemplates",
        "o.?template.?spec",
        ("o.?metadata", "o.?template.?metadata"),
        frozenset((("", "podtemplates"),)),
    ),
)
_COMMON: Final = frozenset().union(*(place.resources for place in PLACES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One entry of `webhooks`. `name` is the first part of the webhook's name, before the phase, and may be ""."""

    name: str
    rules: tuple[WebhookRule, ...]
    conditions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksOfPhase:
    """The webhooks of a phase. `left_out` are policies with rules about Pods without devices, which are not
    registered.
    """

    webhooks: tuple[Webhook, ...]
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)


def webhook_registrations(policies: PolicySet, phase: Phase, *, any_pod: bool = False) -> WebhooksOfPhase:
    """Return the webhooks of a phase. The webhooks for uncommon kinds come first.

    With `any_pod`, Pods and workloads that concern only rules about any Pod are registered as well.
    """
    matched_resources = matched_resources_of_policies(policies, phase)
    if any(
        "*" in (matched.group, matched.resource) or matched.resource.startswith("*/")
        for _, matched in matched_resources
    ):
        return WebhooksOfPhase(webhooks=_webhooks_without_places(matched_resources))
    general = [
        (policy, matched) for policy, matched in matched_resources if (matched.group, matched.resource) not in _COMMON
    ]
    special: list[Webhook] = []
    for place in PLACES:
        of_location = [
            (policy, matched)
            for policy, matched in matched_resources
            if (matched.group, matched.resource) in place.resources
        ]
        unconditional = {
            (matched.group, matched.resource)
            for policy, matched in of_location
            if _needs_no_match_condition(policy, any_pod=any_pod)
        }
        general += [
            (policy, matched) for policy, matched in of_location if (matched.group, matched.resource) in unconditional
        ]
        special += _webhooks_of_pod_location(
            place, [each for each in of_location if (each[1].group, each[1].resource) not in unconditional]
        )
    left_out = {} if any_pod else {policy.name: policy.any_pod for policy, _ in matched_resources if policy.any_pod}
    return WebhooksOfPhase(webhooks=(*_webhooks_without_places(general), *special), left_out=left_out)


def _webhooks_without_places(matched_resources: Collection[tuple[Policy, MatchedResource]]) -> tuple[Webhook, ...]:
    """Return a webhook without updates of bookkeeping fields, and a webhook with every update. A resource is in the
    first webhook if all policies about the resource ignore such updates.
    """
    seen = {
        _resource_without_part(matched) for policy, matched in matched_resources if not _unseen_bookkeeping([policy])
    }
    if any("*" in each for each in seen):
        # a wildcard also covers the other resources
        seen = {_resource_without_part(matched) for _, matched in matched_resources}
    all_pairs = [(policy, matched) for policy, matched in matched_resources if _resource_without_part(matched) in seen]
    others = [(policy, matched) for policy, matched in matched_resources if _resource_without_part(matched) not in seen]
    webhooks_with_pairs = (("", others), ("every-update", all_pairs))
    return tuple(
        Webhook(name=name, rules=rules, conditions=_bookkeeping_conditions([policy for policy, _ in pairs]))
        for name, pairs in webhooks_with_pairs
        if (rules := merge_into_webhook_rules({matched for _, matched in pairs}))
    )


def _resource_without_part(matched: MatchedResource) -> tuple[str, str]:
    return matched.group, matched.resource.partition("/")[0]


def _bookkeeping_conditions(policies: Iterable[Policy]) -> tuple[tuple[str, str], ...]:
    unseen = _unseen_bookkeeping(policies)
    return (("not-bookkeeping", bookkeeping_condition(unseen)),) if unseen else ()


def _unseen_bookkeeping(policies: Iterable[Policy]) -> frozenset[str]:
    """Return the fields of BOOKKEEPING that no policy reads; none if a policy needs every update."""
    fields = (BOOKKEEPING - policy.named_bookkeeping if policy.ignores_bookkeeping else () for policy in policies)
    return BOOKKEEPING.intersection(*fields)


def _needs_no_match_condition(policy: Policy, *, any_pod: bool) -> bool:
    return not (policy.concerns or policy.any_pod) or bool(any_pod and policy.any_pod)


def _webhooks_of_pod_location(place: PodLocation, pairs: list[tuple[Policy, MatchedResource]]) -> Iterator[Webhook]:
    words = sorted({word for policy, _ in pairs for word in policy.concerns})
    concerned = concerns_condition(words, place.spec, place.metadata)
    rules = merge_into_webhook_rules({matched for policy, matched in pairs if set(policy.concerns) - {"custom-kinds"}})
    if rules and concerned != "false":
        mirror = (NOT_A_MIRROR,) if place.name == "pods" else ()
        tracked = _bookkeeping_conditions([policy for policy, _ in pairs])
        yield Webhook(name=place.name, rules=rules, conditions=(*mirror, *tracked, ("concerns-a-policy", concerned)))


def _is_no_short_quantity(value: str) -> str:
    return f"type({value}) != string || {value}.size() > {_QUANTITY} || !isQuantity({value})"


def _has_word_that(test: str) -> str:
    return (
        f"[c.?command, c.?args].exists(w, w.orValue(null) != null && (w.value().size() > {_WORDS} || "
        f"w.value().exists(a, a.size() > {_WORD} || {test})))"
    )


def _has_variable_that(test: str) -> str:
    return f"c.?env.orValue(null) != null && (c.env.size() > {_ENTRIES} || c.env.exists(e, {test}))"


def _is_long_or_matches(field: str, length: int, pattern: str) -> str:
    text = f'e.?{field}.orValue("")'
    return f'{text}.size() > {length} || {text}.matches("{pattern}")'


_SPEC: Final = {
    "claims": "s.?resourceClaims.hasValue()",
    "pod-level": "s.?resources.hasValue() || s.?overhead.hasValue()",
    "queues": '!(s.?schedulerName.orValue("") in ["", "default-scheduler"])',
    "gpu-images": "s.?runtimeClassName.hasValue()",
}
"""The expression of each word of `concerns` about the spec `s` of a pod."""
_CONTAINER: Final = {
    "devices": (
        "[c.?resources.?limits, c.?resources.?requests].exists(m, "
        f"m.orValue(null) != null && (m.value().size() > {_NUMBER_OF_AMOUNTS} || "
        f"!m.value().all(k, k in {_AMOUNTS})))"
    ),
    "portable-gpu": (
        "[c.?resources.?limits, c.?resources.?requests].exists(m, "
        'm.orValue(null) != null && m.value()[?"gpu"].hasValue())'
    ),
    "claims": "c.?resources.?claims.hasValue()",
    "amounts": (
        f"{_AMOUNTS}.exists(k, c.?resources.?limits[?k].hasValue() && c.?resources.?requests[?k].hasValue() && "
        f"({_is_no_short_quantity('c.resources.limits[k]')} || {_is_no_short_quantity('c.resources.requests[k]')} || "
        "quantity(c.resources.requests[k]).compareTo(quantity(c.resources.limits[k])) > 0))"
    ),
    "launchers": (
        f"""{_has_word_that(f'a.matches("{_LAUNCHERS}")')} || {_has_word_that('a.contains("$")')} && """
        + _has_variable_that(_is_long_or_matches("value", _VALUE, _LAUNCHERS))
    ),
    "gpu-images": f'c.?image.orValue("").size() > {_IMAGE} || c.?image.orValue("").matches("{_IMAGES}")',
}
"""The expression of each word of `concerns` about a container `c`"""
_VARIABLE: Final = frozenset(("launchers", "gpu-images"))
_KEYS: Final = "kueue|volcano|scheduling"

MEANINGS: Final[Mapping[str, str]] = {
    "devices": "a container that requests something else than cpu, memory and ephemeral storage",
    "portable-gpu": "a container that requests `gpu`, by that name",
    "claims": "device claims",
    "queues": "labels or annotations of Kueue or Volcano, or another scheduler",
    "launchers": "a command that may start torchrun, accelerate or deepspeed, or variables of a training",
    "gpu-images": "an image, a runtime class or variables that are made for GPUs",
    "amounts": "a request above its limit",
    "pod-level": "resources of the pod as a whole",
    "custom-kinds": "a kind that Kubernetes does not define",
}
"""The words of `concerns` with their meanings. API servers themselves check `custom-kinds` in built-in kinds, before
they call webhooks."""


def concerns_condition(words: Iterable[str], spec: str, metadata: Iterable[str]) -> str:
    """Return CEL that is true if at least one of the words applies to an object; "false" if no word can apply.

    Args:
        words: keys of MEANINGS.
        spec: the path of the PodSpec in the object `o`, such as `o.?spec.?template.?spec`.
        metadata: the paths of the metadata of the object and of its templates.
    """
    remaining = set(words)
    if "devices" in remaining:
        remaining.discard("portable-gpu")  # `devices` includes `gpu`
    parts = [text for word, text in _SPEC.items() if word in remaining]
    of_containers = [text for word, text in _CONTAINER.items() if word in remaining]
    if remaining & _VARIABLE:
        of_containers.append(_has_variable_that(_is_long_or_matches("name", _NAME, _VARIABLES)))
    if of_containers:
        lists = "[s.?containers, s.?initContainers, s.?ephemeralContainers]"
        any_container = " || ".join(f"({text})" for text in of_containers)
        parts.append(
            f"{lists}.exists(l, l.orValue(null) != null && "
            f"(l.value().size() > {_CONTAINERS} || l.value().exists(c, {any_container})))"
        )
    alternatives = [f"[{spec}].exists(s, {' || '.join(f'({text})' for text in parts)})"] if parts else []
    if "queues" in remaining:
        maps = ", ".join(f"{place}.?{name}" for place in metadata for name in ("labels", "annotations"))
        alternatives.append(
            f"[{maps}].exists(m, m.orValue(null) != null && "
            f'(m.value().size() > {_ENTRIES} || m.value().exists(k, k.size() > {_KEY} || k.matches("{_KEYS}"))))'
        )
    return f"[object, oldObject].exists(o, o != null && ({' || '.join(alternatives)}))" if alternatives else "false"


def bookkeeping_condition(fields: Iterable[str]) -> str:
    """Return CEL that is false for updates of an object that is being deleted, or of only the given fields.

    The expression fits objects of any kind, because metadata always has the same schema. Values are compared inside
    lists of one item, because comparing lists costs only the number of items.

    `fields` are names from webhook.policy.compiled.BOOKKEEPING.
    """
    metadata_fields = sorted({*fields, "generation", "resourceVersion"})
    is_deleted = " && ".join(f"{each}.?metadata.?deletionTimestamp.hasValue()" for each in ("object", "oldObject"))
    differs = " || ".join(
        (
            _has_other_field_that_differs("object", "oldObject", ["metadata", *metadata_fields]),
            _has_other_field_that_differs("object.metadata", "oldObject.metadata", metadata_fields),
        )
    )
    return f'request.operation != "UPDATE" || object == null || oldObject == null || !({is_deleted}) && ({differs})'


def _has_other_field_that_differs(new: str, old: str, others: Iterable[str]) -> str:
    list_of_names = "[" + ", ".join(f'"{each}"' for each in others) + "]"
    is_other = f"k.size() > {_FIELD} || !(k in {list_of_names}) &&"
    return (
        f"{new}.size() > {_FIELDS} || {old}.size() > {_FIELDS} || "
        f"{new}.exists(k, {is_other} (!(k in {old}) || [{new}[k]] != [{old}[k]])) || "
        f"{old}.exists(k, {is_other} !(k in {new}))"
    )
