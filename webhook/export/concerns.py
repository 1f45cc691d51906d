"""The parts of an object that concern a policy, as CEL that an API server evaluates.

A policy names the parts in its annotation `concerns`. The expressions become matchConditions of webhooks, so that the
API server does not send an object without these parts. They are about kinds of Kubernetes with pods, which API servers
send in their types: absent fields are read with `?`, and lists and maps that Go may encode as null are compared with
null. So no expression can fail.

Nor may one be stopped for its cost: under failurePolicy Ignore the API server then skips the webhook, and a user could
make an object that no policy sees. So each part asks first whether something is large, which concerns every policy,
and reads a text or walks a list only behind that. `tests/export/test_condition_costs.py` checks that the estimate for
any request stays within the limits (k8s.io/apiserver v0.36 pkg/apis/cel/config.go): a million for an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

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
"""The most that is walked or read: containers of a list, words of a command, characters of a word and of an image,
variables, labels or annotations, characters of a variable's name and value, of a label's key (253 of its domain, a
slash, 63), and of a quantity; fields of an object and of its metadata, and characters of a field's name. An ordinary
Pod has fewer."""
_AMOUNTS: Final = '["cpu", "memory", "ephemeral-storage"]'
_NUMBER_OF_AMOUNTS: Final = 3
_LAUNCHERS: Final = "torch|accel|deepsp|\\\\bds\\\\b"
"""The beginnings of the launchers of webhook/facts/launch: a match costs its text times its pattern."""
_VARIABLES: Final = "RANK|TF_CONF|MASTER_A|WORLD_S|BLE_DEV"
"""Parts of RANK, TF_CONFIG, MASTER_ADDR, WORLD_SIZE and of variables that end in VISIBLE_DEVICES."""
_IMAGES: Final = "cuda|nvidia|-gpu|rocm"
"""Wider than `images` of webhook/facts/gpu/devices.yaml."""


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
"""For the spec `s` of a pod."""
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
"""For a container `c`."""
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
"""The words. `custom-kinds`: what API servers check in their own kinds, and refuse before they ask webhooks."""


def concerns_condition(words: Iterable[str], spec: str, metadata: Iterable[str]) -> str:
    """Return CEL that is true for objects to which one of some words applies; "false" if no word can apply.

    Args:
        words: of MEANINGS.
        spec: the path of the spec of its pods in the object `o`, such as `o.?spec.?template.?spec`.
        metadata: the paths of the metadata of the object and of its pods.
    """
    wanted = set(words)
    if "devices" in wanted:
        wanted.discard("portable-gpu")  # it is one of them
    parts = [text for word, text in _SPEC.items() if word in wanted]
    of_containers = [text for word, text in _CONTAINER.items() if word in wanted]
    if wanted & _VARIABLE:
        of_containers.append(_has_variable_that(_is_long_or_matches("name", _NAME, _VARIABLES)))
    if of_containers:
        lists = "[s.?containers, s.?initContainers, s.?ephemeralContainers]"
        any_container = " || ".join(f"({text})" for text in of_containers)
        parts.append(
            f"{lists}.exists(l, l.orValue(null) != null && "
            f"(l.value().size() > {_CONTAINERS} || l.value().exists(c, {any_container})))"
        )
    alternatives = [f"[{spec}].exists(s, {' || '.join(f'({text})' for text in parts)})"] if parts else []
    if "queues" in wanted:
        maps = ", ".join(f"{place}.?{name}" for place in metadata for name in ("labels", "annotations"))
        alternatives.append(
            f"[{maps}].exists(m, m.orValue(null) != null && "
            f'(m.value().size() > {_ENTRIES} || m.value().exists(k, k.size() > {_KEY} || k.matches("{_KEYS}"))))'
        )
    return f"[object, oldObject].exists(o, o != null && ({' || '.join(alternatives)}))" if alternatives else "false"


def bookkeeping_condition(fields: Iterable[str]) -> str:
    """Return CEL that is false for updates of an object that is being deleted, and for updates that change only some
    fields. The expression does not depend on types: objects of any kind have metadata with a schema. A list of one
    value is compared instead of the value, because the cost of a comparison is the number of items.

    Args:
        fields: of webhook.policy.compiled.BOOKKEEPING.
    """
    kept = sorted({*fields, "generation", "resourceVersion"})
    is_deleted = " && ".join(f"{each}.?metadata.?deletionTimestamp.hasValue()" for each in ("object", "oldObject"))
    differs = " || ".join(
        (
            _has_other_field_that_differs("object", "oldObject", ["metadata", *kept]),
            _has_other_field_that_differs("object.metadata", "oldObject.metadata", kept),
        )
    )
    return f'request.operation != "UPDATE" || object == null || oldObject == null || !({is_deleted}) && ({differs})'


def _has_other_field_that_differs(new: str, old: str, others: Iterable[str]) -> str:
    listed = "[" + ", ".join(f'"{each}"' for each in others) + "]"
    is_other = f"k.size() > {_FIELD} || !(k in {listed}) &&"
    return (
        f"{new}.size() > {_FIELDS} || {old}.size() > {_FIELDS} || "
        f"{new}.exists(k, {is_other} (!(k in {old}) || [{new}[k]] != [{old}[k]])) || "
        f"{old}.exists(k, {is_other} !(k in {new}))"
    )
