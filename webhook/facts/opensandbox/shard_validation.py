"""What is wrong with the shard patches of a BatchSandbox, and with the pods that its controller makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.opensandbox.sandbox import Sandbox, problem
from webhook.facts.opensandbox.shards import Note, Template
from webhook.facts.pods.containers import items, text
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.problem import Problem

_PARTS: Final = ("containers", "initContainers")
_MOST_NAMES: Final = 3
_COUNTED: Final = ("device", "shared", "slice")


def validate_shard_patches(batch: Sandbox) -> Iterator[Problem]:
    """Each patch, merged as the controller merges it; with a Pool they are not read."""
    if batch.spec.get("poolRef"):
        return
    template = Template(batch.spec.get("template"), batch.deadline)
    known = tuple(_container_names(batch))
    for place, patch in enumerate(batch.deadline.each(items(batch.spec.get("shardPatches")))):
        notes = template.notes(patch, ("spec", "shardPatches", place))
        taken = {note.path for note in notes if note.what == "inherits"}
        for note in batch.deadline.each(notes):
            if note.what != "added" or note.path not in taken:
                yield _problem(note, known) if note.certain else _of_second_decoding(note)


def _container_names(batch: Sandbox) -> Iterator[str]:
    for part in _PARTS:
        for container in items(get(batch.spec, ("template", "spec", part))):
            if name := text(get(container, ("name",))):
                yield f"`{name}`"


def _problem(note: Note, known: Sequence[str]) -> Problem:
    match note.what:
        case "type":
            message = f"must be {note.text} because no pod can be created otherwise"
            return problem("patch-type", note.path, message, "correct it")
        case "key":
            message = f"must have a {note.text} because the patch is merged by it"
            return problem("patch-key", note.path, message, f"set the {note.text} of what the patch changes")
        case "merge":
            return problem("patch-merge", note.path, f"cannot be merged into the template: {note.text}")
        case "image":
            others = f", or use {', '.join(known[:_MOST_NAMES])}" if known else ""
            message = "must have an image because the template has no such container"
            return problem("patch-image", (*note.path, "name"), message, f"set an image{others}", note.text)
        case "resources":
            message = f"must leave limit and request of the device equal, but in the pod {note.text}"
            return problem("patch-resources", note.path, message, "set limits and requests in the patch")
        case "sources":
            message = f"claim {note.text} once the patch is merged, but must have exactly one"
            return problem("patch-claim-source", note.path, message, "set the field that the template has")
        case "claim":
            message = "must be declared in spec.resourceClaims of the template or the patch"
            return problem("patch-claim", note.path, message, "declare it, or correct the name", note.text)
        case _:
            return _advice(note)


def _advice(note: Note) -> Problem:
    """What can be merged and does not what it says."""
    match note.what:
        case "keeps":
            message = f"null removes nothing, so the shard keeps `{note.text}`"
            return problem("patch-null", note.path, message, "add the field in the patches that need it alone")
        case "directive":
            message = "removes nothing, so the shard keeps what the template has here"
            fix = "add these fields in the patches that need them alone"
            return problem("patch-directive", note.path, message, fix, note.text or None)
        case "inherits":
            message = f"{note.text} because it takes that place in the list"
            return problem("patch-order", note.path, message, "list the containers of the template before new ones")
        case "added":
            message = "is not a container of the template, so the shard gets one more"
            return problem(
                "patch-container", (*note.path, "name"), message, "correct the name if one was to be changed", note.text
            )
        case _:
            return problem("patch-field", note.path, "is ignored because a Pod has no such field", "correct the name")


def _of_second_decoding(note: Note) -> Problem:
    """What the controller alone makes wrong, which may be right in another release of it."""
    if note.what not in ("image", "resources", "sources", "claim"):
        return _advice(note)
    said = {
        "image": f"container `{note.text}` has no image",
        "sources": f"claim {note.text}",
        "claim": f"claim `{note.text}` is not declared",
    }.get(note.what, note.text)
    message = f"{said} in the pod that the controller creates, so Kubernetes refuses it"
    return problem(
        "patch-decoded-twice", note.path, message, "change the patch so that it names no field of another item"
    )


def validate_shard_devices(subject: Subject) -> Iterator[Problem]:
    """Parts of a device, which is given whole."""
    for container in subject.deadline.each(subject.fact("gpu")["patches"]):
        for each in subject.deadline.each(container["resources"]):
            given: JSON = each["request"] if each["limit"] is None else each["limit"]
            if each["kind"] in _COUNTED and not each["whole"] and (amount := quantity.read(given)) is not None:
                message = "must be a whole number because a device is given whole"
                yield problem("patch-whole-number", each["path"], message, f"set {amount.value()}", given)
