"""Lists of the API, split into their objects: a `List` as kubectl prints it, or a typed list such as a `PodList`.

As in kubectl, an object with a non-empty list of objects in `items` is a list. An object of a kind that ends in `List`
may also have null or an empty list in `items`. The items of a typed list get their kind from the list
(k8s.io/apimachinery v0.36 pkg/apis/meta/v1/unstructured UnstructuredList).
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath


def objects_of_list(value: JSON, path: FieldPath = ()) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield each object of a list, and of the lists inside the list, with its path. For another value, yield the value
    with `path`.
    """
    opened: list[Iterator[tuple[FieldPath, JSON]]] = [iter([(path, value)])]  # a stack: nested generators are slow
    while opened:
        for at, item in opened[-1]:
            if is_list(item):
                opened.append(_items_with_paths(item, at))
                break
            yield at, item
        else:
            opened.pop()


def _items_with_paths(value: JSON, path: FieldPath) -> Iterator[tuple[FieldPath, JSON]]:
    # an item without a kind gets the kind from the list
    kind = value["kind"].removesuffix("List")
    typed = {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}
    for index, item in enumerate(value["items"] or ()):
        yield (*path, "items", index), {**typed, **item} if isinstance(item, dict) else item


def is_list(value: JSON) -> bool:
    """Return whether a value is a list of the API."""
    if not isinstance(value, dict) or "items" not in value:
        return False
    kind, items = value.get("kind"), value["items"]
    if not isinstance(kind, str):
        return False
    if kind.endswith("List"):
        return isinstance(items, list | None)
    return isinstance(items, list) and bool(items) and all(isinstance(each, dict) for each in items)
