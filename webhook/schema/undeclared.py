"""Finds what strict decoding refuses: fields that a type does not declare, and texts that are not quantities.

Source: sigs.k8s.io/json as k8s.io/apimachinery v0.36 pkg/runtime/serializer/json/json.go uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, get_args

from msgspec import Struct, field, structs

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.quantity import read_quantity_or_none
from webhook.deadline import Deadline
from webhook.schema.types import Fields, Items, Scalar, Type
from webhook.text.similar_names import nearest_name
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_non_text

_SHORTEST: Final = 5
"""For an undeclared name of at least this length, a longer name with the same beginning is suggested."""
_INNER: Final = frozenset(("metadata", "spec", "template", "jobTemplate", "resources", "securityContext"))
"""The inner objects to which a misplaced field may belong."""
_SCALARS: Final = (None, *(each for each in get_args(Scalar) if each != "quantity"))
"""The types of map values in which nothing is read."""
_CONTAINERS: Final = "containers"
"""Users often write a field of a container beside the list of containers. The place is then the first container. The
same is true for a list that is the only field of its object, such as the paths of an Ingress.
"""
_METADATA: Final = ("metadata",)
"""The path of metadata, where users often write a field of the object itself."""
_LABELS_AND_ANNOTATIONS: Final = ("labels", "annotations")
"""The fields of metadata that users often write in spec."""
_SOURCES: Final = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "image", "local", "nfs"),
    *("persistentVolumeClaim", "projected", "secret"),
)
"""The common sources of volumes. A volume has one source, and users often write a field of the source beside it."""
_OF_ONE_SOURCE: Final = ("core.v1.Volume", "core.v1.PersistentVolumeSpec")
"""The types of volumes. Fields of a volume that are objects are sources, except _OTHER_VOLUME_FIELDS."""
_OTHER_VOLUME_FIELDS: Final = ("capacity", "claimRef", "nodeAffinity")
_LEVELS: Final = 3
"""A misplaced field is looked for in this number of inner levels, such as spec.template.spec of a Deployment."""


class UndeclaredField(Struct, frozen=True):
    """A field that its object does not declare.

    Args:
        name: the name.
        nearest: a declared field with a similar name; "" without one.
        place: an object that declares the field and has not set the field. None if no object declares the field, if a
            similar name exists, or if the field has no value. With a wrong indentation, the object may be an empty
            field beside this field.
        has_fields_of_object: whether all fields inside the field are fields of the whole object that are not set.
        indented_with: an empty field beside this field that is also undeclared, such as `spec` inside metadata. `place`
            is then the object that both fields should be in; "" without an empty field.
        sources: the sources of a volume that declare the field, if the volume has no source.
    """

    name: str
    nearest: str = ""
    place: FieldPath | None = None
    has_fields_of_object: bool = False
    indented_with: str = ""
    sources: tuple[str, ...] = ()


class UndeclaredFields(Struct, frozen=True):
    """The undeclared fields of one object. `type_name` is the name of its type, such as `PodSpec`."""

    at: FieldPath
    type_name: str
    fields: Sequence[UndeclaredField]


class _Level(Struct, frozen=True):
    """An object inside another: its place, its type, and its value."""

    at: FieldPath
    of: Fields
    value: JSON

    def may_have(self, name: str) -> bool:
        """Return whether the type declares the field and the object has not set it."""
        return name in self.of.fields and not (isinstance(self.value, dict) and name in self.value)

    def inner_levels(self) -> Iterator[_Level]:
        for step, inner in self.of.fields.items():
            is_first_meant = step == _CONTAINERS or len(self.of.fields) == 1
            if is_first_meant and isinstance(inner, Items) and isinstance(inner.item, Fields):
                first = self.value.get(step) if isinstance(self.value, dict) else None
                if isinstance(first, list) and first:
                    yield _Level((*self.at, step, 0), inner.item, first[0])
            if isinstance(inner, Fields) and step in _INNER:
                yield _Level((*self.at, step), inner, self.value.get(step) if isinstance(self.value, dict) else None)


class _Place(Struct, frozen=True):
    """A path, the objects that contain it, and whether its amounts are read."""

    at: FieldPath = ()
    holders: tuple[_Level, ...] = ()
    has_amounts: bool = True


class StrictReading(Struct, frozen=True):
    """Objects with undeclared fields, and texts that are not quantities, with their places."""

    fields: list[UndeclaredFields] = field(default_factory=list)
    quantities: list[tuple[FieldPath, str]] = field(default_factory=list)


class StrictReader(Struct, frozen=True):
    """Reads objects as strict decoding does.

    Args:
        deadline: charged for walked values.
        is_closed: whether all types declare all fields. With False, only types of Kubernetes inside the object do.
        left_out: names of types that are not read.
        left_out_inside: names of types of which only the names of fields are read, not the values.
        left_out_at: places that are not read.
        written: the object with its nulls, in which empty fields are looked for.
        open_at: the place of an object that may have more fields.
        known: fields of the whole object that no type declares.
        removed: pairs of a type and a field that earlier releases had.
        without_amounts: names of types in which texts are not read as quantities.
        only_nulls: whether only undeclared fields with null are reported.
    """

    deadline: Deadline
    is_closed: bool = True
    left_out: Collection[str] = ()
    left_out_inside: Collection[str] = ()
    open_at: FieldPath | None = None
    known: Collection[str] = ()
    removed: Collection[tuple[str, str]] = field(default_factory=frozenset)
    without_amounts: Collection[str] = ()
    only_nulls: bool = False
    left_out_at: Collection[FieldPath] = ()
    written: JSON = None

    def read(self, value: JSON, of: Type) -> StrictReading:
        """Return what strict decoding refuses, in the order of the value."""
        reading = StrictReading()
        self._read(value, of, _Place(), reading)
        return reading

    def _read(self, value: JSON, of: Type, place: _Place, reading: StrictReading) -> None:
        if of == "quantity":
            is_final = place.has_amounts and isinstance(value, str) and not is_placeholder_for_non_text(value)
            if is_final and read_quantity_or_none(value) is None:
                reading.quantities.append((place.at, value))
        elif isinstance(of, Items):
            if isinstance(value, list) and isinstance(of.item, Fields | Items):
                for index, item in enumerate(self.deadline.charge_for_items(value)):
                    self._read(item, of.item, structs.replace(place, at=(*place.at, index)), reading)
        elif isinstance(of, Fields) and isinstance(value, dict) and of.name not in self.left_out:
            if place.at in self.left_out_at:
                return
            self._read_object(value, of, place, reading)

    def _read_object(self, value: dict[str, JSON], of: Fields, place: _Place, reading: StrictReading) -> None:
        level = _Level(place.at, of, value)
        names: list[str] = []
        is_closed = of.fields and of.others is None and (self.is_closed or of.name) and place.at != self.open_at
        if is_closed and not value.keys() <= of.fields.keys():
            names = [name for name in self.deadline.charge_for_items(value) if self._is_undeclared(name, level)]
        if self.only_nulls:
            names = [name for name in names if value[name] is None]
        if names:
            charged_names = self.deadline.charge_for_items(names)
            fields = [self._undeclared_field(name, level, place.holders) for name in charged_names]
            if not self.only_nulls:
                fields = self._with_place_of_all(self._with_source(fields, level), place.holders)
            reading.fields.append(UndeclaredFields(place.at, of.name.rpartition(".")[2], fields))
        if of.name in self.left_out_inside or (not of.fields and of.others in _SCALARS):
            return
        has_amounts, holders = place.has_amounts and of.name not in self.without_amounts, (*place.holders, level)
        for name, inner in self.deadline.charge_for_items(value.items()):
            wanted = of.fields.get(name, of.others or "any")
            if wanted.__class__ is not str or wanted == "quantity":
                self._read(inner, wanted, _Place((*place.at, name), holders, has_amounts), reading)

    def _is_undeclared(self, name: str, level: _Level) -> bool:
        """Return whether an object's type does not declare a field. The type must declare all fields of the object."""
        if name in level.of.fields or (not level.at and name in self.known):
            return False
        is_directive = name.startswith("$")  # a directive of a strategic merge patch
        return not (is_directive or is_placeholder(name) or (level.of.name, name) in self.removed)

    def _undeclared_field(self, name: str, level: _Level, holders: Sequence[_Level]) -> UndeclaredField:
        self.deadline.spend(len(level.of.fields))
        empty = self._empty_fields_with(name, level)
        if len(empty) == 1:
            return UndeclaredField(name, place=(*level.at, empty[0]))
        if above := self._empty_field_of_holder_with(name, level, holders):
            return UndeclaredField(name, place=holders[-1].at, indented_with=above)
        nearest = nearest_name(name, level.of.fields) or _only_longer_name(name, level.of.fields)
        if nearest:
            return UndeclaredField(name, nearest)
        inner = level.value.get(name) if isinstance(level.value, dict) else None
        if inner is None:
            return UndeclaredField(name)
        charge = self.deadline.charge_for_items
        if not level.at and isinstance(inner, dict) and inner and all(map(level.may_have, charge(inner))):
            return UndeclaredField(name, has_fields_of_object=True)
        return UndeclaredField(name, place=self._place(name, level, holders))

    def _empty_fields_with(self, name: str, level: _Level) -> list[str]:
        """Return the fields of an object that are written without a value, and have a type that declares the field
        `name`.
        """
        written = get(self.written, level.at)
        if not isinstance(written, dict) or written.get(name) is None:
            return []
        inner = ((each, level.of.fields.get(each)) for each in self.deadline.charge_for_items(written))
        return [each for each, of in inner if isinstance(of, Fields) and name in of.fields and not written[each]]

    def _empty_field_of_holder_with(self, name: str, level: _Level, holders: Sequence[_Level]) -> str:
        """Return an empty field that, like the field `name` beside it, is indented too far; "" without such a field.

        The object does not declare the empty field. The object's holder declares the empty field, and has no value for
        this field. The type of the empty field declares `name`.
        """
        written = get(self.written, level.at)
        if not holders or not isinstance(written, dict) or written.get(name) is None:
            return ""
        holder = holders[-1]
        for each in self.deadline.charge_for_items(written):
            of = holder.of.fields.get(each)
            is_misplaced = written[each] is None and each not in level.of.fields
            is_free = isinstance(holder.value, dict) and not holder.value.get(each)
            if is_misplaced and is_free and isinstance(of, Fields) and name in of.fields:
                return str(each)
        return ""

    def _with_source(self, fields: list[UndeclaredField], level: _Level) -> list[UndeclaredField]:
        """Return the undeclared fields of a volume. If one source of the volume declares all of these fields, the
        source is the place of the fields. If the volume has no source, each field gets all common sources that declare
        all of these fields.
        """
        written = get(self.written, level.at)
        if level.of.name not in _OF_ONE_SOURCE or not isinstance(written, dict):
            return fields
        if any(each.place or each.nearest for each in fields):
            return fields
        types = {name: of for name, of in level.of.fields.items() if isinstance(of, Fields)}
        present = [name for name in types if name in written and name not in _OTHER_VOLUME_FIELDS]
        names = [each.name for each in self.deadline.charge_for_items(fields)]
        declaring = tuple(
            name
            for name in present or [each for each in _SOURCES if each in types]
            if all(_Level((), types[name], written.get(name)).may_have(each) for each in names)
        )
        if len(declaring) == 1:
            return [structs.replace(each, place=(*level.at, declaring[0])) for each in fields]
        return fields if present else [structs.replace(each, sources=declaring) for each in fields]

    def _with_place_of_all(self, fields: list[UndeclaredField], holders: Sequence[_Level]) -> list[UndeclaredField]:
        """Return the fields with the same place, if one nearby object declares all of these fields. A wrong indentation
        moves the last fields of a container to the last item of the list below it.
        """
        places = {each.place for each in fields}
        is_settled = len(places) == 1 and None not in places
        if is_settled or len(fields) == 1 or any(each.nearest for each in fields):
            return fields
        names = [each.name for each in self.deadline.charge_for_items(fields)]
        for holder in reversed(holders):
            for near in (holder, *holder.inner_levels()):
                if near.at and near.of.fields.keys() >= {*names}:
                    is_free = all(map(near.may_have, names))
                    return [structs.replace(each, place=near.at) for each in fields] if is_free else fields
        return fields

    def _place(self, name: str, level: _Level, holders: Sequence[_Level]) -> FieldPath | None:
        for holder in reversed(holders):
            self.deadline.spend(1)
            if name in holder.of.fields and (holder.at or level.at == _METADATA):
                if holder.may_have(name):
                    return holder.at
                break  # farther out, a field with this name means something else
        levels = [level]
        for _ in range(_LEVELS):
            levels = [inner for each in levels for inner in self.deadline.charge_for_items([*each.inner_levels()])]
            for each in levels:
                if each.may_have(name):
                    return each.at
            if any(name in each.of.fields for each in levels):
                return None  # the nearest object that declares the field already has the field
        if len(level.at) != 1 or name not in _LABELS_AND_ANNOTATIONS:
            return None
        return next(
            (each.at for each in holders[0].inner_levels() if each.at == _METADATA and each.may_have(name)), None
        )


def _only_longer_name(name: str, known: Iterable[str]) -> str:
    """Return the only field that begins with a name, such as priorityClassName for priorityClass; else ""."""
    longer = [each for each in known if len(name) >= _SHORTEST and each.startswith(name)]
    return longer[0] if len(longer) == 1 else ""
