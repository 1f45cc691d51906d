"""The pods of a BatchSandbox's patched shards, as its controller makes them, and what is wrong with their patches.

Pod i is the template with shardPatches[i] merged into it, a strategic merge patch of a Pod, and decoded over the pod
without it. So a field that the patch takes away stays, and an item of a list that moves takes over what its new place
had and it has not. Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/
batchsandbox_controller.go scaleBatchSandbox, and Go's encoding/json. Knows no cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain

from webhook.attributes import JSON, POD
from webhook.deadline import Deadline
from webhook.patch import schema, strategic
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.quantity import Quantity, read
from webhook.similar_names import nearest_name
from webhook.wording import either

_WORDS = {"string": "a string", "numeric": "a number", "boolean": "true or false"}
_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "numeric": (int, float), "boolean": bool}
_LISTS = ("containers", "initContainers")
_SOLID = frozenset(("image", "resources"))
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be said of the patch of one shard.

    Args:
        what: of the patch: type (text is what was expected), unknown (the field that is probably meant), key (the merge
            key that an item lacks), merge (why it cannot be merged), keeps and directive (what it cannot take away). Of
            the pod: image, added, inherits (a new container) and moved, resources, sources and claim.
        path: where it stands in the object.
        text: what it is about.
        certain: whether it would be so without the second decoding too.
        over: the item of the template at whose place an item of the pod stands, where that is another one.
        fix: what to do about it, where that depends on what is wrong.

    """

    what: str
    path: FieldPath
    text: str
    certain: bool = True
    over: str = ""
    fix: str = ""


class Template:
    """The template of all shards; what is asked of it again and again is worked out once."""

    def __init__(self, template: JSON, deadline: Deadline | None = None) -> None:
        self.written = _template_as_go_writes(template)
        self.deadline = deadline or Deadline()
        self.claims = items(get(self.written, ("spec", "resourceClaims")))
        self.sources = dict(_claims(self.claims))
        self.is_torn = any(self.sources[name] != source for name, source in _claims(self.claims))

    def pods(self, patch: JSON) -> tuple[JSON, JSON]:
        """Return the template with a patch merged into it, and the pod that the controller makes of both.

        Raises:
            Unmergeable: the patch cannot be merged.
        """
        merged = _merged(self.written, patch, self.deadline)
        return merged, _decoded(self.written, merged)

    def notes(self, patch: JSON, at: FieldPath) -> list[Note]:
        """Return what is wrong with the patch of one shard, which stands at a path."""
        if patch is None:
            return []
        broken = list(_mistyped(patch, schema.schema_of_kind(POD), at, self.deadline))
        broken += _keyless(patch, "PodTemplateSpec", at) if not broken else ()
        if any(note.what in ("type", "key") for note in broken):
            return broken
        try:
            merged, pod = self.pods(patch)
        except strategic.Unmergeable as error:
            return [*broken, Note("merge", at, str(error), fix=error.fix)]
        shard = _Shard(self, patch, merged, pod, at, _places(patch))
        either = [*_containers(shard, merged), *_sources(shard, merged)]
        told = {(note.what, note.path) for note in either}
        made = [*_containers(shard, shard.pod), *_sources(shard, shard.pod), *_inherited(shard)]
        surely = [replace(note, certain=(note.what, note.path) in told) for note in made]
        return [*broken, *_kept_nulls_and_directives(patch, self.written, "PodTemplateSpec", at), *surely]


def _template_as_go_writes(template: JSON) -> JSON:
    """Return the template as Go writes it: whatever has no name in a list of its pod has an empty one."""
    spec = get(template, ("spec",))
    if not isinstance(spec, dict):
        return template if isinstance(template, dict) else {}
    named = {
        name: [item if text(get(item, ("name",))) else {**(item or {}), "name": ""} for item in spec[name]]
        for name, tag in strategic.tags_of("PodSpec").items()
        if tag.get("merge") == "name" and all(isinstance(item, dict | None) for item in items(spec.get(name)) or (0,))
    }
    return {**template, "spec": {**spec, **named}}


def _merged(template: JSON, patch: JSON, deadline: Deadline) -> JSON:
    """Return the template with the patch merged into it; an item that a list did not have comes in with its nulls."""
    merged = strategic.merge_patch(template, patch, "PodTemplateSpec", deadline)
    spec = merged.get("spec")
    for name, tag in strategic.tags_of("PodSpec").items() if isinstance(spec, dict) else ():
        key, given = tag.get("merge"), items(get(patch, ("spec", name)))
        had = {str(get(item, (key,))) for item in items(get(template, ("spec", name)))} if key and given else set()
        new = {str(get(item, (key,))): item for item in given if isinstance(item, dict)} if had else {}
        if new.keys() - had:
            whole = [new.get(now, item) if (now := str(get(item, (key,)))) not in had else item for item in spec[name]]
            merged = {**merged, "spec": {**merged["spec"], name: whole}}
    return merged


@dataclass(frozen=True, slots=True)
class _Shard:
    """The template, the patch, the one merged into the other, the pod that comes of it, and where the patch stands."""

    template: Template
    patch: JSON
    merged: JSON
    pod: JSON
    at: FieldPath
    places: Mapping[str, Mapping[str, int]]

    def place(self, part: str, name: str) -> FieldPath:
        """Return where the patch names an item of one of its lists, or where the list is."""
        place = self.places[part].get(name)
        return (*self.at, "spec", part) if place is None else (*self.at, "spec", part, place)

    def list_of(self, part: str) -> list[JSON]:
        """Return a list of the template's pod."""
        return items(get(self.template.written, ("spec", part)))


def _places(patch: JSON) -> Mapping[str, Mapping[str, int]]:
    """Return where each name stands first in the lists of a patch."""
    places: dict[str, Mapping[str, int]] = {}
    for part in (*_LISTS, "resourceClaims"):
        names = [text(get(item, ("name",))) for item in items(get(patch, ("spec", part)))]
        places[part] = {name: len(names) - 1 - back for back, name in enumerate(reversed(names))}
    return places


def _decoded(old: JSON, new: JSON) -> JSON:
    """Return what Go makes of a value that it decodes over another: fields that it does not name stay as they were.

    Null empties pointers, lists and maps; of a container, image and resources are none of these.
    """
    if new is old:
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        named = {name: value for name, value in new.items() if value is not None or name not in _SOLID}
        return {**old, **{name: _decoded(old.get(name), value) for name, value in named.items()}}
    if isinstance(old, list) and isinstance(new, list):
        return [_decoded(old[place] if place < len(old) else None, value) for place, value in enumerate(new)]
    return new


def _mistyped(value: JSON, node: schema.Node, at: FieldPath, deadline: Deadline) -> Iterator[Note]:
    """Yield values of the wrong type, from which no pod can be decoded, and fields that a Pod does not have."""
    deadline.spend(1)
    if value is None or (isinstance(value, str) and is_placeholder(value)):
        return
    shape = schema.shape_of_node(node)
    if shape.scalar == "untyped":
        return
    expected = "an object" if shape.map else "a list" if shape.list else _WORDS.get(shape.scalar or "", "")
    if shape.map and isinstance(value, dict):
        for name, inner in value.items():
            known = shape.map.fields.get(name, shape.map.other)
            if known is not None:
                yield from _mistyped(inner, known, (*at, name), deadline)
            elif not name.startswith("$"):
                yield Note("unknown", (*at, name), nearest_name(name, deadline.paced([*shape.map.fields])))
    elif shape.list and isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _mistyped(inner, shape.list.element, (*at, place), deadline)
    elif expected and not _is_a(value, shape.scalar):
        yield Note("type", at, expected)


def _is_a(value: JSON, scalar: str | None) -> bool:
    wanted = _TYPES.get(scalar or "", ())
    return isinstance(value, wanted) and (scalar == "boolean" or not isinstance(value, bool))


def _keyless(patch: JSON, kind: str, at: FieldPath) -> Iterator[Note]:
    """Yield items of lists that are merged by a key, and lack it; a directive needs none."""
    for name, value in patch.items():
        tag = strategic.tags_of(kind).get(name, {})
        if isinstance(value, dict):
            yield from _keyless(value, tag.get("type", ""), (*at, name))
        for place, item in enumerate(value if isinstance(value, list) and tag.get("merge") else ()):
            where = (*at, name, place)
            if not isinstance(item, dict) or (item.get(tag["merge"]) is None and "$patch" not in item):
                yield Note("key", where, tag["merge"])
            elif "type" in tag:
                yield from _keyless(item, tag["type"], where)


def _kept_nulls_and_directives(patch: JSON, old: JSON, kind: str, at: FieldPath) -> Iterator[Note]:
    """Yield nulls and directives of the patch, where the template has something that they would take away."""
    for name, value in patch.items():
        if name in ("$patch", "$retainKeys"):
            if old:
                yield Note("directive", (*at, name), text(value))
            continue
        before, tag = get(old, (name,)), strategic.tags_of(kind).get(name, {})
        if value is None and before is not None and not isinstance(before, dict | list):  # those are often just empty
            yield Note("keeps", (*at, name), str(before))
        elif isinstance(value, dict) and isinstance(before, dict):
            yield from _kept_nulls_and_directives(value, before, tag.get("type", ""), (*at, name))
        elif isinstance(value, list) and tag.get("merge"):
            known = {str(get(item, (tag["merge"],))): item for item in items(before)}
            for place, item in enumerate(value):
                same = known.get(str(get(item, (tag["merge"],)))) if isinstance(item, dict) else None
                if same is not None:
                    yield from _kept_nulls_and_directives(item, same, tag.get("type", ""), (*at, name, place))


def _containers(shard: _Shard, pod: JSON) -> Iterator[Note]:
    """Yield what is wrong with the containers of a pod that are not as the template has them."""
    declared: AbstractSet[str] | None = None
    for part in _LISTS:
        before, after = shard.list_of(part), items(get(pod, ("spec", part)))
        if after is before:
            continue
        same = _Same(before)
        for place, container in enumerate(shard.template.deadline.paced(after)):
            if not isinstance(container, dict) or container in same:
                continue
            where, over = shard.place(part, name := text(container.get("name"))), _over(before, place, name)
            if name not in same.names:
                yield Note("added" if text(container.get("image")) else "image", where, name, over=over)
            declared = _declared(shard, pod) if declared is None else declared
            patched = get(shard.patch, where[len(shard.at) :])
            for note in chain(_amounts(container, patched, where), _undeclared(container, declared, where)):
                yield replace(note, over=over)


def _over(before: Sequence[JSON], place: int, name: str) -> str:
    """Return the name of the template's item at a place of a list, where the pod has another one there."""
    there = text(get(before[place], ("name",))) if place < len(before) else ""
    return there if there != name else ""


class _Same:
    """Which containers are as the template has them, and the names of these."""

    def __init__(self, before: Sequence[JSON]) -> None:
        self._own = {id(each) for each in before}
        self.names: dict[str, list[JSON]] = {}
        for each in before:
            self.names.setdefault(text(get(each, ("name",))), []).append(each)

    def __contains__(self, container: JSON) -> bool:
        return id(container) in self._own or container in self.names.get(text(container.get("name")), ())


def _declared(shard: _Shard, pod: JSON) -> AbstractSet[str]:
    """Return the names of the claims that a pod declares."""
    listed = items(get(pod, ("spec", "resourceClaims")))
    if listed is shard.template.claims:
        return shard.template.sources.keys()
    return {name for name, _ in _claims(listed)}


def _inherited(shard: _Shard) -> Iterator[Note]:
    """Yield containers that took over fields of another, at whose place of the list they come."""
    for part in _LISTS:
        before, merged, after = (
            shard.list_of(part),
            *(items(get(each, ("spec", part))) for each in (shard.merged, shard.pod)),
        )
        known = {text(get(each, ("name",))) for each in before} if after is not before else ()
        for old, new, container in zip(before, merged, after, strict=False) if after is not before else ():
            name = text(get(new, ("name",)))
            foreign = sorted(container.keys() - new.keys()) if isinstance(new, dict) else ()
            if foreign and text(old.get("name")) != name:
                over = text(old.get("name"))
                what, said = ("moved", "also") if name in known else ("inherits", "is not in the template and")
                words = f"container `{name}` {said} gets {' and '.join(foreign)} of container `{over}`"
                yield Note(what, shard.place(part, name), words, over=over)


def _amounts(container: JSON, patched: JSON, where: FieldPath) -> Iterator[Note]:
    """Yield extended resources whose request has no limit, or another one."""
    limits, requests = (get(container, ("resources", side)) or {} for side in ("limits", "requests"))
    for name, request in requests.items() if isinstance(requests, dict) and isinstance(limits, dict) else ():
        if "/" not in name or "kubernetes.io/" in name or request is None:
            continue
        limit = limits.get(name)
        if limit is None or _amount(limit) != _amount(request):
            side = "requests" if get(patched, ("resources", "limits", name)) is None else "limits"
            words = "there is no limit" if limit is None else f"the limit is `{limit}`"
            yield Note("resources", (*where, "resources", side, name), f"{words} and the request is `{request}`")


def _amount(value: JSON) -> Quantity | str:
    amount = read(value)
    return str(value) if amount is None else amount


def _claims(listed: Iterable[JSON]) -> Iterator[tuple[str, list[str]]]:
    """Yield the claims of a pod by name, with the fields that say where they come from."""
    for claim in listed:
        if isinstance(claim, dict):
            yield text(claim.get("name")), [field for field in _SOURCES if claim.get(field) is not None]


def _undeclared(container: JSON, declared: AbstractSet[str], where: FieldPath) -> Iterator[Note]:
    for place, claim in enumerate(items(get(container, ("resources", "claims")))):
        if (name := text(get(claim, ("name",)))) not in declared:
            yield Note("claim", (*where, "resources", "claims", place), name)


def _sources(shard: _Shard, pod: JSON) -> Iterator[Note]:
    """Yield claims that have not exactly one source, and had it in the template or were not there."""
    listed, before = items(get(pod, ("spec", "resourceClaims"))), shard.template.sources
    if listed is shard.template.claims and not shard.template.is_torn:
        return
    for place, (name, source) in enumerate(_claims(shard.template.deadline.paced(listed))):
        if len(source) != 1 and before.get(name) != source:
            words = f"two sources ({' and '.join(source)})" if source else "no source"
            at, over = shard.place("resourceClaims", name), _over(shard.template.claims, place, name)
            yield Note(
                "sources", at, f"`{name}` has {words}", over=over, fix=_fix_of_claim_sources(source, before.get(name))
            )


def _fix_of_claim_sources(source: Sequence[str], of_template: Sequence[str] | None) -> str:
    """Say what to do about a claim without source, or with two."""
    if not source:
        return f"set {either(_SOURCES)}"
    if of_template is None or len(of_template) != 1:
        return "set only one of them"
    return f"set only {of_template[0]}, as the template does, or give the claim another name"


def items(value: JSON) -> list[JSON]:
    """Return a list, or an empty one for null and whatever else stands in a patch."""
    return value if isinstance(value, list) else []


def text(value: JSON) -> str:
    """Return a text, or "" for null and whatever else stands in a patch."""
    return value if isinstance(value, str) else ""
