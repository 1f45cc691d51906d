"""Objects as people write them: random variants with nulls, absent and empty fields, by a seed.

The full objects are in `webhook/suites/valid_objects.yaml`. A required field mostly stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind, plural_of_kind
from webhook.cluster.known_kinds import is_cluster_scoped
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Type
from webhook.suites.valid_objects import ValidObjects, paths_of_fields, valid_objects

_RATES: Final = (0.02, 0.05, 0.1, 0.25)
"""The share of the fields of an object that are changed."""
_EMPTY: Final = {str: "", bool: False, int: 0, list: [], dict: {}}


def url_of_kind(kind: GroupVersionKind) -> str:
    """Return the path for creating objects of the kind, in the namespace default."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"
    where = "" if is_cluster_scoped(kind) else "/namespaces/default"
    return f"{root}{where}/{plural_of_kind(kind.kind)}"


def hand_written_objects(seed: int) -> Iterator[tuple[GroupVersionKind, JSON]]:
    """Yield an object of each kind, and three objects of kinds with a pod template."""
    random = Random(seed)
    for kind, objects in valid_objects().items():
        has_pods = "containers" in str(objects.full)
        for _ in range(3 if has_pods else 1):
            made = _Writer(random, objects, random.choice(_RATES)).object_of_type(type_of(kind))
            if kind.kind == "Secret" and random.random() < 0.5:  # a review never has this field
                made["stringData"] = random.choice(({"password": "abc"}, {"password": ""}, {}, None))
            yield kind, made


class _Writer(Struct):
    random: Random
    objects: ValidObjects
    rate: float
    required: frozenset[str] = frozenset()

    def object_of_type(self, of: Type | None) -> JSON:
        """Return a variant of the full object or of the smallest object, with its names."""
        written = self.random.choice((self.objects.full, self.objects.full, self.objects.full, self.objects.smallest))
        self.required = frozenset((*paths_of_fields(self.objects.smallest), "metadata", "metadata.name"))
        made = self._written(written, of or "any", "")
        kept = {name: written[name] for name in ("apiVersion", "kind")}
        metadata = {**(made.get("metadata") or {}), "name": "sample"}
        return {**made, **kept, "metadata": metadata}

    def _written(self, value: Any, of: Type, at: str) -> Any:
        if isinstance(value, list):
            item = of.item if isinstance(of, Items) else "any"
            return [self._written(each, item, f"{at}[]") for each in value]
        if not isinstance(value, dict):
            return self._unquoted(value) if of == "quantity" else value
        declared = of if isinstance(of, Fields) else Fields({})
        made = {}
        for name, each in value.items():
            inner = declared.fields.get(name, declared.others or "any")
            self._write_field(made, name, each, inner, f"{at}.{name}" if at else name)
        absent = [name for name in declared.fields if name not in value]
        if absent and self.random.random() < self.rate:
            made[self.random.choice(absent)] = None
        return made

    def _write_field(self, made: dict[str, Any], name: str, value: Any, of: Type, at: str) -> None:
        is_required = at in self.required or f".{at}".endswith(self.objects.required)
        if self.random.random() >= (self.rate / 20 if is_required else self.rate):
            made[name] = self._written(value, of, at)
            return
        choice = self.random.choice(("absent", "absent", "absent", "null", "null", "empty"))
        if choice != "absent":
            made[name] = None if choice == "null" else _EMPTY[type(value)]

    def _unquoted(self, amount: Any) -> Any:
        if isinstance(amount, str) and amount.isdecimal() and self.random.random() < 0.5:
            return int(amount)
        return amount
