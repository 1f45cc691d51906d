"""Which fields of an object the installed Kubeflow Trainer does not have: fields.yaml, asked by kind and release.

Knows Trainer's own API only, not the pod and JobSet templates inside it. A null is as good as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from webhook import paths, yamlfile
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.trainer.releases import OLDEST
from webhook.paths import FieldPath
from webhook.releases import Release, parsed, shown

FILE = Path(__file__).with_name("fields.yaml")
_FOREVER: Release = (99, 0)


@dataclass(frozen=True, slots=True)
class Changed:
    """A field that only some releases have."""

    since: Release
    until: Release
    instead: str

    @property
    def releases(self) -> str:
        """Which, in words: `2.1 only`, `2.4 and later`."""
        first, last = shown(self.since), shown(self.until)
        if self.until == _FOREVER:
            return f"{first} and later"
        return f"{last} only" if self.since == self.until else f"up to {last}"


@dataclass(slots=True)
class Shape:
    """What may stand in one object; None where nothing is known about it. `changed` and `inner` by the field's name."""

    known: frozenset[str] | None = None
    changed: dict[str, Changed] = field(default_factory=dict)
    inner: dict[str, Shape] = field(default_factory=dict)

    def at(self, path: str) -> Shape:
        """The shape of what stands at a path inside it, made where there is none yet."""
        name, _, rest = path.partition(".")
        shape = self.inner.setdefault(name.removesuffix("[]"), Shape())
        return shape.at(rest) if rest else shape


@dataclass(frozen=True, slots=True)
class Table:
    """All of fields.yaml; what is `known` is known of the releases from since to until."""

    since: Release
    until: Release
    kinds: Mapping[str, Shape]


@cache
def table() -> Table:
    """The shipped table; read on first use."""
    (document,) = yamlfile.read(FILE)
    value = document.value
    kinds = {kind: _shape(objects, value["changed"].get(kind, ())) for kind, objects in value["objects"].items()}
    return Table(since=_release(value["since"]), until=_release(value["until"]), kinds=kinds)


def _shape(objects: Mapping[str, Sequence[str]], changed: Sequence[JSON]) -> Shape:
    whole = Shape()
    for path, names in objects.items():
        whole.at(path).known = frozenset(names)
    for row in changed:
        parent, _, name = row["path"].rpartition(".")
        since = _release(row["since"]) if "since" in row else OLDEST
        until = _release(row["until"]) if "until" in row else _FOREVER
        whole.at(parent).changed[name] = Changed(since, until, row["instead"])
    return whole


def _release(text: str) -> Release:
    release = parsed(text)
    if release is None:
        raise ValueError(f"{FILE}: `{text}` is not a release")
    return release


def unknown(obj: JSON, kind: str, release: Release, deadline: Deadline | None = None) -> Iterator[JSON]:
    """Every field that the release does not have: `{path, releases, instead}`; releases is "" for one that none has."""
    shape = table().kinds.get(kind)
    if shape is not None:
        yield from _unknown(obj, shape, release, (), deadline or Deadline())


def _unknown(value: JSON, shape: Shape, release: Release, at: FieldPath, deadline: Deadline) -> Iterator[JSON]:
    deadline.spend(1)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, shape, release, (*at, index), deadline)
    elif isinstance(value, dict):
        for name, held in value.items():
            if held is None:
                continue
            found = _judge(name, shape, release)
            if found is not None:
                yield {"path": paths.render((*at, name)), **found}
            elif name in shape.inner:
                yield from _unknown(held, shape.inner[name], release, (*at, name), deadline)


def _judge(name: str, shape: Shape, release: Release) -> dict[str, str] | None:
    """Where to find a field that the release does not have; None when it has it."""
    changed = shape.changed.get(name)
    if changed is not None:
        is_there = changed.since <= release <= changed.until
        return None if is_there else {"releases": changed.releases, "instead": changed.instead}
    is_known = shape.known is None or name in shape.known or not table().since <= release <= table().until
    return None if is_known else {"releases": "", "instead": ""}
