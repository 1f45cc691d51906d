"""Which fields of a TrainJob or a runtime the installed Kubeflow Trainer has, and which fields an update changes.

train_job_and_runtime_fields.yaml lists the fields of each release. The file has the fields of Trainer's own API, not
the fields of the pod and JobSet templates inside. A null counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import is_
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.apimachinery.releases import Release, parse_release, release_as_text
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import train_job_patches
from webhook.facts.train_job_pods.releases import (
    OLDEST,
    UNKNOWN_RELEASE,
    find_trainer_release,
    read_trainer_installation,
)
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule
from webhook.text.caches import IdentityKey
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean
from webhook.typed.view import Typed
from webhook.yamltext import yamlfile

_encode: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = b"\xc0"
"""The encoding of null (MessagePack specification, "nil format"). UTF-8 texts never contain this byte, but lengths
and numbers may."""
_DIRECTIVE: Final = re.compile(rb"[\xa0-\xbf]\$|\xd9.\$|\xda..\$|\xdb....\$", re.DOTALL)
"""Matches the encoded length of a text ("str format family") before a dollar. Other bytes may match, too."""


def has_no_null_or_dollar_key(value: JSON, deadline: Deadline) -> bool:
    """Return whether a value certainly has no null and no key that begins with a dollar."""
    deadline.check_clock()  # msgspec cannot be interrupted
    try:
        written = _encode(value)
    except (ValueError, OverflowError, TypeError):  # integers above 64 bits, halves of surrogate pairs, unread parts
        return False
    deadline.spend_text(written)
    return _NIL not in written and not (b"$" in written and _DIRECTIVE.search(written))


FILE = Path(__file__).with_name("train_job_and_runtime_fields.yaml")
_FOREVER: Release = (99, 0)
_MOST_RELEASES: Final = 64
"""The fields of at most this many releases are cached: a cluster has one release, but parameters may name any."""


class FieldRules(NamedTuple):
    """The rules that report fields of one kind."""

    unknown_field: Rule
    other_release_field: Rule


class ReleaseBoundField(Struct, frozen=True):
    """A field that only some releases have. `instead`: the fix for other releases."""

    since: Release
    until: Release
    instead: str

    @property
    def releases(self) -> str:
        """Return the releases as a text: `release 2.1 has`, `releases since 2.4 have`."""
        first, last = release_as_text(self.since), release_as_text(self.until)
        if self.until == _FOREVER:
            return f"releases since {first} have"
        return f"release {last} has" if self.since == self.until else f"releases up to {last} have"


WORDS_FOR_PROCESSES: Final = ("auto", "cpu", "gpu")
"""The texts that releases up to 2.1 accept as numProcPerNode."""
_WORD_FOR_PROCESSES: Final = ReleaseBoundField(OLDEST, (2, 1), "a number")


class ObjectShape(Struct):
    """The fields of one object.

    Args:
        known: the names of the fields; None if some names are not known.
        is_fixed: whether the object has these fields in every release that has the object.
        changed: the fields that only some releases have, by name.
        inner: the shapes of the objects in the fields, by the name of the field.
        _kept: the names of the fields that a release certainly keeps.
    """

    known: frozenset[str] | None = None
    is_fixed: bool = False
    changed: dict[str, ReleaseBoundField] = field(default_factory=dict)
    inner: dict[str, ObjectShape] = field(default_factory=dict)
    _kept: dict[Release, frozenset[str]] = field(default_factory=dict)

    def field_names_of_release(self, release: Release) -> frozenset[str]:
        """Return the declared names that a release keeps; cached."""
        made = self._kept.get(release)
        if made is None:
            if len(self._kept) >= _MOST_RELEASES:
                self._kept.clear()
            named = (*(self.known or ()), *self.changed)
            made = self._kept[release] = frozenset(name for name in named if self.keeps(name, release))
        return made

    def keeps(self, name: str, release: Release) -> bool:
        """Return whether the API server keeps a field in a release. Merge directives (`$patch`) are never kept."""
        changed = self.changed.get(name)
        if changed is not None:
            return changed.since <= release <= changed.until
        return not name.startswith("$") and not self.lacks(name, release)

    def lacks(self, name: str, release: Release) -> bool:
        """Return whether the object has no field of this name; False if the names of the release are not known."""
        return (
            self.known is not None and name not in self.known and (self.is_fixed or read_field_table().knows(release))
        )

    def find_or_create_shape(self, path: str) -> ObjectShape:
        """Return the shape at a path inside this shape, and create the shape if it does not exist."""
        name, _, rest = path.partition(".")
        shape = self.inner.setdefault(name.removesuffix("[]"), ObjectShape())
        return shape.find_or_create_shape(rest) if rest else shape


class FieldTable(Struct, frozen=True):
    """The content of train_job_and_runtime_fields.yaml. All field names are known for releases `since` to `until`."""

    since: Release
    until: Release
    kinds: Mapping[str, ObjectShape]

    def knows(self, release: Release) -> bool:
        """Return whether all field names of a release are known, and not only the names that releases changed."""
        return self.since <= release <= self.until


@cache
def read_field_table() -> FieldTable:
    """Return the shipped table, which is read on first use."""
    (document,) = yamlfile.read(FILE)
    value = document.value
    kinds = {
        kind: _read_shape(objects, value["fixed"].get(kind, {}), value["changed"].get(kind, ()))
        for kind, objects in value["objects"].items()
    }
    for kind, inner in value["embedded"].items():
        kinds[kind] = ObjectShape()
        for path, embedded in inner.items():
            parent, _, name = path.rpartition(".")
            kinds[kind].find_or_create_shape(parent).inner[name] = kinds[embedded]
    return FieldTable(
        since=_parse_release_or_fail(value["since"]), until=_parse_release_or_fail(value["until"]), kinds=kinds
    )


def _read_shape(
    objects: Mapping[str, Sequence[str]], fixed: Mapping[str, Sequence[str]], changed: Sequence[JSON]
) -> ObjectShape:
    whole = ObjectShape()
    for path, names in chain(objects.items(), fixed.items()):
        shape = whole.find_or_create_shape(path)
        shape.known, shape.is_fixed = frozenset(names), path in fixed
    for row in changed:
        parent, _, name = row["path"].rpartition(".")
        since = _parse_release_or_fail(row["since"]) if "since" in row else OLDEST
        until = _parse_release_or_fail(row["until"]) if "until" in row else _FOREVER
        whole.find_or_create_shape(parent).changed[name] = ReleaseBoundField(since, until, row["instead"])
    return whole


def _parse_release_or_fail(text: str) -> Release:
    release = parse_release(text)
    if release is None:
        raise ValueError(f"{FILE}: `{text}` is not a release")
    return release


def check_fields_exist_in_release(
    obj: JSON,
    kind: str,
    release: Release,
    rules: FieldRules,
    deadline: Deadline,
    *,
    is_sent: bool = False,
    is_named: bool = False,
) -> Iterator[Problem]:
    """Yield every field that the release does not have.

    `is_sent`: an API server sent the object, without the fields that its CustomResourceDefinition lacks. So a field
    that the release does not have shows that the release in the params is wrong. `is_named`: a user named the
    release. If the release is assumed, a file with a field of an older release may be for that older release, unless
    the file also has a newer field.
    """
    shape = read_field_table().kinds.get(kind)
    if shape is None:
        return
    finder = _UnknownFieldFinder(release, rules, deadline, is_sent, is_named)
    if not is_sent and not is_named:
        bound = _release_bound_fields(obj, shape, (), deadline)
        finder = replace(finder, newest=max(bound, key=lambda each: each[1].since, default=None))
    yield from finder.find_in_object(obj, shape, ())


def _release_bound_fields(
    value: JSON, shape: ObjectShape, at: FieldPath, deadline: Deadline
) -> Iterator[tuple[FieldPath, ReleaseBoundField]]:
    """Yield the fields in an object that exist only in some releases, with their paths."""
    deadline.spend(1)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _release_bound_fields(item, shape, (*at, index), deadline)
    elif isinstance(value, dict):
        for name, held in value.items():
            if held is not None and name in shape.changed:
                yield (*at, name), shape.changed[name]
            if held is not None and name in shape.inner:
                yield from _release_bound_fields(held, shape.inner[name], (*at, name), deadline)


def older_release_of_fields(subject: Subject) -> Release | None:
    """Return the newest release that has all fields in the spec of a TrainJob, and accepts a word as numProcPerNode.

    Return None if a user named the release, if the assumed release has all fields, or if no release has all fields.
    """
    installed = subject.once(read_trainer_installation)
    whole, spec = read_field_table().kinds.get("TrainJob"), get(subject.object, ("spec",))
    shape = whole.inner.get("spec") if whole is not None else None
    if installed.is_named or shape is None or not isinstance(spec, dict):
        return None
    bound = [changed for name, changed in shape.changed.items() if spec.get(name) is not None]
    if get(spec, ("trainer", "numProcPerNode")) in WORDS_FOR_PROCESSES:
        bound.append(_WORD_FOR_PROCESSES)
    newest = min((changed.until for changed in bound), default=installed.release)
    return newest if max((changed.since for changed in bound), default=newest) <= newest < installed.release else None


def without_dropped_fields(obj: JSON, kind: str, release: Release, deadline: Deadline) -> JSON:
    """Return the object without the fields that the API server drops, as far as the release's fields are known."""
    shape = read_field_table().kinds.get(kind)
    return obj if shape is None else _FieldPruner.for_value(obj, release, deadline).pruned_value(obj, shape)


def cached_pruned_object(obj: JSON, kind: str, release: Release, view: ClusterView) -> JSON:
    """Return the object without dropped fields, computed once a request."""
    return view.once(
        (without_dropped_fields, IdentityKey(obj), kind, release),
        lambda: without_dropped_fields(obj, kind, release, view.deadline),
    )


def pruned_value_at(value: JSON, at: FieldPath, kind: str, release: Release, deadline: Deadline) -> JSON:
    """Return the value at a path of an object, without dropped fields; None if a field of the path is dropped."""
    shape = read_field_table().kinds.get(kind)
    for name in at:
        if shape is not None and isinstance(name, str):
            if not shape.keeps(name, release):
                return None
            shape = shape.inner.get(name)
    return value if shape is None else _FieldPruner.for_value(value, release, deadline).pruned_value(value, shape)


class _FieldPruner(NamedTuple):
    """Removes dropped fields. `is_bare`: whether the value has no nulls and no directives, as most values."""

    release: Release
    deadline: Deadline
    is_bare: bool

    @classmethod
    def for_value(cls, value: JSON, release: Release, deadline: Deadline) -> _FieldPruner:
        return cls(release, deadline, has_no_null_or_dollar_key(value, deadline))

    def pruned_value(self, value: JSON, shape: ObjectShape | None) -> JSON:
        """Return a value without dropped fields; the same value if nothing is dropped. If its shape is not known, only
        nulls and directives are removed.
        """
        if shape is None and (self.is_bare or not isinstance(value, dict | list)):
            return value
        if shape is None:
            return _without_nulls_and_directives(value, self.deadline)
        self.deadline.spend(1)
        if isinstance(value, list):
            items = [self.pruned_value(each, shape) for each in value]
            return value if all(map(is_, items, value)) else items
        if not isinstance(value, dict):
            return value
        made: dict[str, JSON] = {}
        is_whole, kept = True, shape.field_names_of_release(self.release)
        for name, held in value.items():
            if held is None or not (name in kept or shape.keeps(name, self.release)):
                is_whole = False
                continue
            inner = shape.inner.get(name)
            made[name] = pruned = held if inner is None and self.is_bare else self.pruned_value(held, inner)
            is_whole = is_whole and pruned is held
        return value if is_whole else made


def _without_nulls_and_directives(value: JSON, deadline: Deadline) -> JSON:
    deadline.spend(1)
    if isinstance(value, list):
        items = [_without_nulls_and_directives(each, deadline) for each in value]
        return value if all(map(is_, items, value)) else items
    if not isinstance(value, dict):
        return value
    kept = {name: held for name, held in value.items() if held is not None and not name.startswith("$")}
    made = {name: _without_nulls_and_directives(held, deadline) for name, held in kept.items()}
    return value if len(made) == len(value) and all(map(is_, made.values(), value.values())) else made


class _UnknownFieldFinder(Struct, frozen=True):
    """Finds unknown fields in one object.

    `newest`: the field of the object that came with the newest release, and its path. None if a user named the release,
    if an API server sent the object, or if every release has all fields.
    """

    release: Release
    rules: FieldRules
    deadline: Deadline
    is_sent: bool
    is_named: bool
    newest: tuple[FieldPath, ReleaseBoundField] | None = None

    def find_in_object(self, value: JSON, shape: ObjectShape, at: FieldPath) -> Iterator[Problem]:
        self.deadline.spend(1)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.find_in_object(item, shape, (*at, index))
        elif isinstance(value, dict):
            for name, held in value.items():
                if held is not None:
                    yield from self._check_field(name, held, shape, at)

    def _check_field(self, name: str, held: JSON, shape: ObjectShape, at: FieldPath) -> Iterator[Problem]:
        changed, path = shape.changed.get(name), (*at, name)
        if changed is not None and not changed.since <= self.release <= changed.until:
            yield self._other_release_problem(path, changed)
            if self.newest is not None and changed.until < self.release and name in shape.inner:
                yield from replace(self, release=changed.until).find_in_object(held, shape.inner[name], path)
        elif changed is None and shape.lacks(name, self.release) and not self.is_sent:
            what = f"is not a field of Trainer {release_as_text(self.release)}"
            message = f"{what}, so kubectl refuses the object, and other clients may drop the field"
            known = sorted(each for each in shape.known or () if shape.keeps(each, self.release))
            near = nearest_name(name, self.deadline.items_with_clock_checks(known))
            fix = did_you_mean(near, "remove the field, or move the field to its place")
            yield self.rules.unknown_field.problem(path, message, fix)
        elif name in shape.inner:
            yield from self.find_in_object(held, shape.inner[name], path)

    def _other_release_problem(self, path: FieldPath, changed: ReleaseBoundField) -> Problem:
        """Return the problem of a field that the release lacks; undecided if another release may be installed."""
        rule = self.rules.other_release_field
        if self.newest is None or changed.until > self.release:
            message, fix = self._message_and_fix_for_other_release(changed)
            return rule.problem(path, message, fix, for_administrators=self.is_sent)
        path_of_newest, newest = self.newest
        if newest.since <= changed.until:
            return rule.problem(path, missing=(UNKNOWN_RELEASE,))
        message = f"is ignored by every release of Trainer that has {path_as_text(path_of_newest)}"
        return rule.problem(path, f"{message} because only {changed.releases} this field", self._fix_for(changed))

    def _fix_for(self, changed: ReleaseBoundField) -> str:
        return f"use {changed.instead.format(patches=train_job_patches.name_of_patches_field(self.release))}"

    def _message_and_fix_for_other_release(self, changed: ReleaseBoundField) -> tuple[str, str]:
        """Return the message and the fix for a field that the release does not have."""
        release, only = release_as_text(self.release), f"only {changed.releases} this field"
        if not self.is_sent:
            assumed = "" if self.is_named else " (the assumed release)"
            return f"is ignored by Trainer {release}{assumed} because {only}", self._fix_for(changed)
        source, correction = (
            ("configured", "correct") if self.is_named else ("assumed", "name the installed release in")
        )
        message = f"is kept by the API server although {only}, so the {source} release {release} is wrong"
        return message, f"ask the administrator to {correction} `trainer` of ConfigMap `trainer`"


def comparable_specs(subject: Subject) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    """Return the new and the old spec, without the fields that the release drops."""
    return subject.once(_specs_without_ignored_fields)


def _specs_without_ignored_fields(subject: Subject) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    (_, kind), release, deadline = subject.group_kind, find_trainer_release(subject), subject.deadline
    kept = (without_dropped_fields(each, kind, release, deadline) for each in (subject.object, subject.old_object))
    now, before = (get(each, ("spec",), {}) for each in kept)
    return now, before


def is_field_changed(name: str, now: Typed, before: Typed) -> bool:
    """Return whether a field has a new value (`self == oldSelf`). A field that is added or removed does not count."""
    return None not in (now.json.get(name), before.json.get(name)) and now.differs(before, name)


def changes_more_than_suspend(subject: Subject) -> bool:
    """Return whether an update changes more than spec.suspend; True for a creation. Stopping a job must always be
    possible.
    """
    if subject.old_object is None:
        return True
    now, before = comparable_specs(subject)
    return any(now.get(name) != before.get(name) for name in {**now, **before} if name != "suspend")
