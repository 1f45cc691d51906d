"""Decodes lists and watches object by object. Returns the namespace, the name and the kept fields of each object.

An object that cannot be decoded is noted with its name and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.cluster.decoding import decode_value_at, is_too_deep
from webhook.cluster.discovery import ServedResource
from webhook.cluster.interest import Interest
from webhook.cluster.lookup import OMITTED
from webhook.cluster.packed import (
    LARGEST_HELD,
    SMALL,
    PackedObject,
    TooDeepObject,
    encode_kept,
    projection_of_fields,
    with_shared_keys,
)
from webhook.cluster.store import HeldObject, Place, UnreadableObject
from webhook.cluster.view_memory import ViewMemory
from webhook.errors import LookupFailed

CHANGES: Final = frozenset(("ADDED", "MODIFIED", "DELETED"))
"""The types of events about a change of an object."""
_STUB_METADATA: Final = ("name", "namespace", "uid", "generation", "creationTimestamp")
_LONGEST_ERROR: Final = 200
"""The maximum length, in characters, of an error about an object."""


class Event(Struct, frozen=True):
    """An event of a watch. A change has `place` and `kept`, an error has `status`."""

    type: str
    version: str
    place: Place = ("", "")
    kept: HeldObject = None
    status: JSON = None


@dataclass(slots=True)
class ObjectReader:
    """Reads the objects of one interest.

    Attributes:
        interest: the objects and fields that are kept.
        resource: the kind as the API server serves it.
        memory: the memory of the view. The lock `memory.decoding` is held while one object is decoded and reduced.
    """

    interest: Interest
    resource: ServedResource
    memory: ViewMemory
    _project: Callable[[JSON], JSON] = field(init=False)

    def __post_init__(self) -> None:
        self._project = projection_of_fields(self.interest.fields)

    def read_item(self, text: str, at: int) -> tuple[tuple[Place, HeldObject], int] | None:
        """Read an item of a list. Return its place with the kept fields, and its end; None if the item is cut off."""
        with self.memory.decoding:
            value_and_end = decode_value_at(text, at)
            return None if value_and_end is None else (self._place_and_kept_fields(value_and_end[0]), value_and_end[1])

    def read_event(self, text: str, at: int) -> tuple[Event, int] | None:
        """Read an event with only the kept fields of its object, and its end; None if the event is cut off.

        Raise LookupFailed if the text is not an event.
        """
        with self.memory.decoding:
            value_and_end = decode_value_at(text, at)
            if value_and_end is None:
                return None
            try:
                return self._event(value_and_end[0]), value_and_end[1]
            except (TypeError, LookupError, AttributeError) as error:
                raise LookupFailed(f"the API server sent an event that cannot be read: {error!r}") from None

    def _event(self, event: JSON) -> Event:
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            return Event(kind, "", status=obj)
        version = str(obj["metadata"]["resourceVersion"])
        return Event(kind, version, *self._place_and_kept_fields(obj)) if kind in CHANGES else Event(kind, version)

    def _place_and_kept_fields(self, obj: JSON) -> tuple[Place, HeldObject]:
        # an unreadable object must not end the watch, so only the reason is kept
        place = _namespace_and_name_of_object(obj)
        try:
            return place, self._kept_fields_of_object(place, obj)
        except TooDeepObject as error:
            return place, UnreadableObject(str(error))
        except Exception as error:  # noqa: BLE001 - users choose the content of the object
            return place, UnreadableObject(f"cannot be read: {repr(error)[:_LONGEST_ERROR]}")

    def _kept_fields_of_object(self, place: Place, obj: JSON) -> HeldObject:
        resource, interest = self.resource, self.interest
        kept = self._project({**obj, "apiVersion": resource.api_version, "kind": interest.gvk.kind})
        if interest.most_bytes is not None and (size := len(encode_kept(kept))) > interest.most_bytes:
            kept = _stub_of_object(kept, size)
        if not resource.is_namespaced:
            return with_shared_keys(kept, self.memory.keys)
        text = encode_kept(kept)
        if len(text) <= SMALL:
            return with_shared_keys(kept, self.memory.keys)
        if len(text) > LARGEST_HELD and not interest.scope.namespace:
            reason = f"has {len(text)} bytes, more than the {LARGEST_HELD} bytes that the view keeps: make it smaller"
            return UnreadableObject(reason)
        if is_too_deep(kept):
            raise TooDeepObject
        return PackedObject(*place, text)


def _stub_of_object(obj: JSON, size: int) -> JSON:
    """Return an object with its size in place of all fields except some metadata and a small status."""
    metadata = {name: obj["metadata"][name] for name in _STUB_METADATA if name in obj["metadata"]}
    status = {"status": obj["status"]} if len(encode_kept(obj.get("status"))) <= SMALL and "status" in obj else {}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, OMITTED: size, **status}


def _namespace_and_name_of_object(obj: JSON) -> Place:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
