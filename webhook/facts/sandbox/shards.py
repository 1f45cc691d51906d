"""The pods that the controller creates for the patched shards of a BatchSandbox, and the problems of the patches.

Pod i is the template with the strategic merge patch shardPatches[i]. The controller decodes the patched pod over the
pod of the template. So a field that the patch removes stays. A list item that moves to another index gets missing
fields from the template's item at this index.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go
scaleBatchSandbox, and Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from webhook.apimachinery.attributes import JSON, POD
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.quantity import Quantity, read_quantity_or_none
from webhook.deadline import Deadline
from webhook.patch import schema, strategic
from webhook.text.similar_names import nearest_name
from webhook.text.wording import either
from webhook.yamltext.placeholders import is_placeholder

_KEPT_IF_NULL: Final = frozenset(("image", "resources"))
_WORDS = {"string": "a string", "numeric": "a number", "boolean": "true or false"}
_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "numeric": (int, float), "boolean": bool}
_LISTS = ("containers", "initContainers")
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


@dataclass(frozen=True, slots=True)
class ShardPatchNote:
    """A problem of the patch of one shard.

    Args:
        what: the kind of the problem. Of the patch: type, unknown, key, merge, keeps or directive. Of the pod: image,
            added, inherits, moved, resources, sources or claim.
        path: the path of the problem in the object.
        text: a detail for the message. For type, the expected value; for unknown, the field that was probably intended;
            for key, the missing merge key; for merge, why the patch cannot be merged; for keeps and directive, what the
            patch cannot remove.
        certain: whether the template merged with the patch already has the problem, before the controller decodes the
            merged template over the template.
        overwritten_item: the name of the template's item at the same index, if the pod has another item there.
        fix: the fix, for kinds of problems with several fixes.
    """

    what: str
    path: FieldPath
    text: str
    certain: bool = True
    overwritten_item: str = ""
    fix: str = ""


class ShardTemplate:
    """The template of all shards, with the values that every patch needs."""

    def __init__(self, template: JSON, deadline: Deadline | None = None) -> None:
        self.deadline = deadline or Deadline()
        charged = self.deadline.items_with_clock_checks
        self.written = template_as_go_writes(template, self.deadline)
        self.claims = list_or_empty(get(self.written, ("spec", "resourceClaims")))
        self.sources = dict(_claims_with_sources(charged(self.claims)))
        self.has_conflicting_claims = any(
            self.sources[name] != source for name, source in _claims_with_sources(charged(self.claims))
        )

    def merge_and_decode_patch(self, patch: JSON) -> tuple[JSON, JSON]:
        """Return the template with the patch merged into it, and the pod that the controller creates.

        Raises:
            UnmergeableError: the patch cannot be merged.
        """
        merged = merge_shard_patch(self.written, patch, self.deadline)
        return merged, decode_over_old_value(self.written, merged, self.deadline)

    def notes_on_patch(self, patch: JSON, at: FieldPath) -> list[ShardPatchNote]:
        """Return the problems of the patch of one shard; `at` is the path of the patch."""
        if patch is None:
            return []
        charged = self.deadline.items_with_clock_checks
        broken = list(charged(_notes_on_mistyped_values(patch, schema.schema_of_kind(POD), at, self.deadline)))
        if not broken:
            broken += charged(_notes_on_items_without_key(patch, "PodTemplateSpec", at, self.deadline))
        if any(note.what in ("type", "key") for note in broken):
            return broken
        try:
            merged, pod = self.merge_and_decode_patch(patch)
        except strategic.UnmergeableError as error:
            # the controller follows no `$patch`: rule patch-directive
            fix = "remove $patch" if error.fix == strategic.FIX_OF_DIRECTIVE else error.fix
            return [*broken, ShardPatchNote("merge", at, str(error), fix=fix)]
        shard = _PatchedShard(self, patch, merged, pod, at, _index_by_name_in_patch_lists(patch, self.deadline))
        notes_on_merged = chain(_notes_on_containers(shard, merged), _notes_on_claim_sources(shard, merged))
        already_wrong = {(note.what, note.path) for note in charged(notes_on_merged)}
        notes_on_decoded = chain(
            _notes_on_containers(shard, shard.pod),
            _notes_on_claim_sources(shard, shard.pod),
            _notes_on_inherited_fields(shard),
        )
        notes_on_pod = [
            replace(note, certain=(note.what, note.path) in already_wrong) for note in charged(notes_on_decoded)
        ]
        ignored = _notes_on_ignored_nulls_and_directives(patch, self.written, "PodTemplateSpec", at, self.deadline)
        return [*broken, *charged(ignored), *notes_on_pod]


@dataclass(frozen=True, slots=True)
class _PatchedShard:
    """A shard: template, patch, merged template, pod, path of the patch, and indexes of names in the patch's lists."""

    template: ShardTemplate
    patch: JSON
    merged: JSON
    pod: JSON
    at: FieldPath
    places: Mapping[str, Mapping[str, int]]

    def path_in_patch(self, part: str, name: str) -> FieldPath:
        """Return the path of an item in a list of the patch; the path of the list if the patch lacks the item."""
        place = self.places[part].get(name)
        return (*self.at, "spec", part) if place is None else (*self.at, "spec", part, place)

    def list_of_template_pod(self, part: str) -> list[JSON]:
        """Return a list of the template's pod, such as `containers`."""
        return list_or_empty(get(self.template.written, ("spec", part)))


def _index_by_name_in_patch_lists(patch: JSON, deadline: Deadline) -> Mapping[str, Mapping[str, int]]:
    """Return the first index of each name in the lists of a patch."""
    places: dict[str, Mapping[str, int]] = {}
    for part in (*_LISTS, "resourceClaims"):
        listed = deadline.items_with_clock_checks(list_or_empty(get(patch, ("spec", part))))
        names = [text_or_empty(get(item, ("name",))) for item in listed]
        places[part] = {name: len(names) - 1 - back for back, name in enumerate(reversed(names))}
    return places


def _notes_on_mistyped_values(
    value: JSON, node: schema.Node, at: FieldPath, deadline: Deadline
) -> Iterator[ShardPatchNote]:
    """Yield values of the wrong type, and fields that a Pod does not have."""
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
                yield from _notes_on_mistyped_values(inner, known, (*at, name), deadline)
            elif not name.startswith("$"):
                yield ShardPatchNote(
                    "unknown", (*at, name), nearest_name(name, deadline.items_with_clock_checks([*shape.map.fields]))
                )
    elif shape.list and isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _notes_on_mistyped_values(inner, shape.list.element, (*at, place), deadline)
    elif expected and not _is_of_type(value, shape.scalar):
        yield ShardPatchNote("type", at, expected)


def _is_of_type(value: JSON, scalar: str | None) -> bool:
    wanted = _TYPES.get(scalar or "", ())
    return isinstance(value, wanted) and (scalar == "boolean" or not isinstance(value, bool))


def _notes_on_items_without_key(patch: JSON, kind: str, at: FieldPath, deadline: Deadline) -> Iterator[ShardPatchNote]:
    """Yield list items without the merge key of the list. A directive needs no key."""
    deadline.spend(1)
    for name, value in deadline.items_with_clock_checks(patch.items()):
        tag = strategic.merge_tags_of_type(kind).get(name, {})
        if isinstance(value, dict):
            yield from _notes_on_items_without_key(value, tag.get("type", ""), (*at, name), deadline)
        listed = value if isinstance(value, list) and tag.get("merge") else ()
        for place, item in enumerate(deadline.items_with_clock_checks(listed)):
            where = (*at, name, place)
            if not isinstance(item, dict) or (item.get(tag["merge"]) is None and "$patch" not in item):
                yield ShardPatchNote("key", where, tag["merge"])
            elif "type" in tag:
                yield from _notes_on_items_without_key(item, tag["type"], where, deadline)


def _notes_on_ignored_nulls_and_directives(
    patch: JSON, old: JSON, kind: str, at: FieldPath, deadline: Deadline
) -> Iterator[ShardPatchNote]:
    """Yield nulls and directives of the patch that do not remove a part of the template, although they should."""
    deadline.spend(1)
    for name, value in deadline.items_with_clock_checks(patch.items()):
        if name in ("$patch", "$retainKeys"):
            if old:
                yield ShardPatchNote("directive", (*at, name), text_or_empty(value))
            continue
        before, tag = get(old, (name,)), strategic.merge_tags_of_type(kind).get(name, {})
        # a list or an object of the template is not reported, because it is often empty
        if value is None and before is not None and not isinstance(before, dict | list):
            yield ShardPatchNote("keeps", (*at, name), str(before))
        elif isinstance(value, dict) and isinstance(before, dict):
            yield from _notes_on_ignored_nulls_and_directives(value, before, tag.get("type", ""), (*at, name), deadline)
        elif isinstance(value, list) and tag.get("merge"):
            items_before = deadline.items_with_clock_checks(list_or_empty(before))
            items_by_key = {str(get(item, (tag["merge"],))): item for item in items_before}
            for place, item in enumerate(deadline.items_with_clock_checks(value)):
                same = items_by_key.get(str(get(item, (tag["merge"],)))) if isinstance(item, dict) else None
                if same is not None:
                    yield from _notes_on_ignored_nulls_and_directives(
                        item, same, tag.get("type", ""), (*at, name, place), deadline
                    )


def _notes_on_containers(shard: _PatchedShard, pod: JSON) -> Iterator[ShardPatchNote]:
    """Yield the problems of containers that differ from the template."""
    declared: AbstractSet[str] | None = None
    for part in _LISTS:
        before, after = shard.list_of_template_pod(part), list_or_empty(get(pod, ("spec", part)))
        if after is before:
            continue
        same = _UnchangedContainers(before, shard.template.deadline)
        for place, container in enumerate(shard.template.deadline.items_with_clock_checks(after)):
            if not isinstance(container, dict) or container in same:
                continue
            where, overwritten_item = (
                shard.path_in_patch(part, name := text_or_empty(container.get("name"))),
                _name_of_overwritten_item(before, place, name),
            )
            if name not in same.names:
                yield ShardPatchNote(
                    "added" if text_or_empty(container.get("image")) else "image",
                    where,
                    name,
                    overwritten_item=overwritten_item,
                )
            declared = _declared_claim_names(shard, pod) if declared is None else declared
            patched = get(shard.patch, where[len(shard.at) :])
            for note in chain(
                _notes_on_extended_resources(container, patched, where, shard.template.deadline),
                _notes_on_undeclared_claims(container, declared, where, shard.template.deadline),
            ):
                yield replace(note, overwritten_item=overwritten_item)


def _name_of_overwritten_item(before: Sequence[JSON], place: int, name: str) -> str:
    """Return the name of the template's item at an index; "" if the pod has the same item there."""
    name_in_template = text_or_empty(get(before[place], ("name",))) if place < len(before) else ""
    return name_in_template if name_in_template != name else ""


class _UnchangedContainers:
    """The containers of the template, by identity and by name."""

    def __init__(self, before: Sequence[JSON], deadline: Deadline) -> None:
        self._deadline = deadline
        self._own = set[int]()
        self.names: dict[str, list[JSON]] = {}
        for each in deadline.items_with_clock_checks(before):
            self._own.add(id(each))
            self.names.setdefault(text_or_empty(get(each, ("name",))), []).append(each)

    def __contains__(self, container: JSON) -> bool:
        if id(container) in self._own:
            return True
        of_name = self.names.get(text_or_empty(container.get("name")), ())
        return any(container == each for each in self._deadline.items_with_clock_checks(of_name))


def _declared_claim_names(shard: _PatchedShard, pod: JSON) -> AbstractSet[str]:
    listed = list_or_empty(get(pod, ("spec", "resourceClaims")))
    if listed is shard.template.claims:
        return shard.template.sources.keys()
    return {name for name, _ in _claims_with_sources(shard.template.deadline.items_with_clock_checks(listed))}


def _notes_on_inherited_fields(shard: _PatchedShard) -> Iterator[ShardPatchNote]:
    """Yield containers that get fields of another container of the template with the same index."""
    charged = shard.template.deadline.items_with_clock_checks
    for part in _LISTS:
        before, merged, after = (
            shard.list_of_template_pod(part),
            *(list_or_empty(get(each, ("spec", part))) for each in (shard.merged, shard.pod)),
        )
        if after is before:
            continue
        known = {text_or_empty(get(each, ("name",))) for each in charged(before)}
        for old, new, container in charged(zip(before, merged, after, strict=False)):
            name = text_or_empty(get(new, ("name",)))
            foreign = sorted(container.keys() - new.keys()) if isinstance(new, dict) else ()
            if foreign and text_or_empty(old.get("name")) != name:
                overwritten_item = text_or_empty(old.get("name"))
                what, verb = ("moved", "also") if name in known else ("inherits", "is new and")
                words = f"container `{name}` {verb} gets {' and '.join(foreign)}"
                yield ShardPatchNote(what, shard.path_in_patch(part, name), words, overwritten_item=overwritten_item)


def _notes_on_extended_resources(
    container: JSON, patched: JSON, where: FieldPath, deadline: Deadline
) -> Iterator[ShardPatchNote]:
    """Yield extended resources with a request but without an equal limit."""
    limits, requests = (get(container, ("resources", side)) or {} for side in ("limits", "requests"))
    if not isinstance(requests, dict) or not isinstance(limits, dict):
        return
    for name, request in deadline.items_with_clock_checks(requests.items()):
        if "/" not in name or "kubernetes.io/" in name or request is None:
            continue
        limit = limits.get(name)
        if limit is None or _quantity_or_text(limit) != _quantity_or_text(request):
            side = "requests" if get(patched, ("resources", "limits", name)) is None else "limits"
            words = "there is no limit" if limit is None else f"the limit is `{limit}`"
            yield ShardPatchNote(
                "resources", (*where, "resources", side, name), f"{words} and the request is `{request}`"
            )


def _quantity_or_text(value: JSON) -> Quantity | str:
    amount = read_quantity_or_none(value)
    return str(value) if amount is None else amount


def _claims_with_sources(listed: Iterable[JSON]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each claim of a pod, and the source fields that the claim sets."""
    for claim in listed:
        if isinstance(claim, dict):
            yield text_or_empty(claim.get("name")), [field for field in _SOURCES if claim.get(field) is not None]


def _notes_on_undeclared_claims(
    container: JSON, declared: AbstractSet[str], where: FieldPath, deadline: Deadline
) -> Iterator[ShardPatchNote]:
    claims = deadline.items_with_clock_checks(list_or_empty(get(container, ("resources", "claims"))))
    for place, claim in enumerate(claims):
        if (name := text_or_empty(get(claim, ("name",)))) not in declared:
            yield ShardPatchNote("claim", (*where, "resources", "claims", place), name)


def _notes_on_claim_sources(shard: _PatchedShard, pod: JSON) -> Iterator[ShardPatchNote]:
    """Yield claims that have no source, or several sources, after the patch."""
    listed, before = list_or_empty(get(pod, ("spec", "resourceClaims"))), shard.template.sources
    if listed is shard.template.claims and not shard.template.has_conflicting_claims:
        return
    for place, (name, source) in enumerate(
        _claims_with_sources(shard.template.deadline.items_with_clock_checks(listed))
    ):
        if len(source) != 1 and before.get(name) != source:
            words = f"two sources ({' and '.join(source)})" if source else "no source"
            at, overwritten_item = (
                shard.path_in_patch("resourceClaims", name),
                _name_of_overwritten_item(shard.template.claims, place, name),
            )
            yield ShardPatchNote(
                "sources",
                at,
                f"`{name}` has {words}",
                overwritten_item=overwritten_item,
                fix=_fix_of_claim_sources(source, before.get(name)),
            )


def _fix_of_claim_sources(source: Sequence[str], of_template: Sequence[str] | None) -> str:
    if not source:
        return f"set {either(_SOURCES)}"
    if of_template is None or len(of_template) != 1:
        return "set only one of these"
    others = either([name for name in source if name != of_template[0]])
    return (
        f"set {of_template[0]} instead of {others}, or first list the claims of the template by name, and add a claim "
        "with another name after them"
    )


def template_as_go_writes(template: JSON, deadline: Deadline) -> JSON:
    """Return the template as Go writes it. In the lists of the pod, an item without a name gets an empty name."""
    spec = get(template, ("spec",))
    if not isinstance(spec, dict):
        return template if isinstance(template, dict) else {}
    charged, named = deadline.items_with_clock_checks, {}
    for name, tag in strategic.merge_tags_of_type("PodSpec").items():
        listed = list_or_empty(spec.get(name))
        if tag.get("merge") == "name" and listed and all(isinstance(item, dict | None) for item in charged(listed)):
            named[name] = [
                item if text_or_empty(get(item, ("name",))) else {**(item or {}), "name": ""}
                for item in charged(listed)
            ]
    return {**template, "spec": {**spec, **named}}


def merge_shard_patch(template: JSON, patch: JSON, deadline: Deadline) -> JSON:
    """Return the template with the patch merged into it. List items that the template lacks keep their nulls."""
    merged = strategic.merge_patch(template, patch, "PodTemplateSpec", deadline)
    spec = merged.get("spec")
    for name, tag in strategic.merge_tags_of_type("PodSpec").items() if isinstance(spec, dict) else ():
        key, patched_items = tag.get("merge"), list_or_empty(get(patch, ("spec", name)))
        if not key or not patched_items:
            continue
        charged = deadline.items_with_clock_checks
        names_in_template = {str(get(item, (key,))) for item in charged(list_or_empty(get(template, ("spec", name))))}
        new = (
            {str(get(item, (key,))): item for item in charged(patched_items) if isinstance(item, dict)}
            if names_in_template
            else {}
        )
        if new.keys() - names_in_template:
            listed = charged(spec[name])
            whole = [
                new.get(name_in_list, item)
                if (name_in_list := str(get(item, (key,)))) not in names_in_template
                else item
                for item in listed
            ]
            merged = {**merged, "spec": {**merged["spec"], name: whole}}
    return merged


def decode_over_old_value(old: JSON, new: JSON, deadline: Deadline) -> JSON:
    """Return the result of decoding a new value over an old value, as Go does. Fields that only the old value has stay.

    A null empties pointers, lists and maps, but not the image and the resources of a container.
    """
    if new is old:
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        deadline.spend(len(old) + len(new))
        named = {name: value for name, value in new.items() if value is not None or name not in _KEPT_IF_NULL}
        return {
            **old,
            **{name: decode_over_old_value(old.get(name), value, deadline) for name, value in named.items()},
        }
    if isinstance(old, list) and isinstance(new, list):
        numbered = enumerate(deadline.items_with_clock_checks(new))
        return [decode_over_old_value(old[at] if at < len(old) else None, value, deadline) for at, value in numbered]
    return new


def list_or_empty(value: JSON) -> list[JSON]:
    """Return a list; an empty list for null and any other value in a patch."""
    return value if isinstance(value, list) else []


def text_or_empty(value: JSON) -> str:
    """Return a text, or "" for null and any other value in a patch."""
    return value if isinstance(value, str) else ""
