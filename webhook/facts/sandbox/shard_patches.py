"""The problems of the shard patches of a BatchSandbox, and of the pods that the controller creates from the patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.facts.sandbox.shards import ShardPatchNote, ShardTemplate
from webhook.facts.sandbox.types import SANDBOX, SANDBOX_ADVICE, BatchSandbox
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import did_you_mean, either
from webhook.typed.collections import Items

PATCH_TYPE: Final = SANDBOX.rule(
    "sandbox/patch-type",
    title="The patched pod has a value of the wrong type",
    why="The patched pod cannot be decoded, so no pod is created.",
    function="scaleBatchSandbox",
)
PATCH_KEY: Final = SANDBOX.rule(
    "sandbox/patch-key",
    title="A list item in a shard patch of the BatchSandbox has no merge key",
    why=(
        "A strategic merge patch finds containers, variables and claims by name. Without the name the patch fails, and "
        "no pod is created."
    ),
    source="k8s.io/apimachinery v0.36 pkg/util/strategicpatch/patch.go",
    function="mergeSliceWithoutSpecialElements",
)
PATCH_MERGE: Final = SANDBOX.rule(
    "sandbox/patch-merge",
    title="A shard patch of the BatchSandbox cannot be merged into the template",
    why="The patch fails, and no pod is created.",
    source="k8s.io/apimachinery v0.36 pkg/util/strategicpatch/patch.go",
    function="StrategicMergePatch",
)
PATCH_IMAGE: Final = SANDBOX.rule(
    "sandbox/patch-image",
    title="A shard patch of the BatchSandbox adds a container without an image",
    why=(
        "A name that the template does not have adds a new container, and the API server refuses a container without "
        "an image. Usually the name is misspelt."
    ),
    refused_by="the API server, when the pod is created",
    function="scaleBatchSandbox",
)
PATCH_RESOURCES: Final = SANDBOX.rule(
    "sandbox/patch-resources",
    title="With a shard patch of the BatchSandbox, a device's limit and request differ",
    why=(
        "A value that the patch does not set stays as in the template. Kubernetes refuses a limit that differs from "
        "the request."
    ),
    refused_by="the API server, when the pod is created",
    function="scaleBatchSandbox",
)
PATCH_WHOLE_NUMBER: Final = SANDBOX.rule(
    "sandbox/patch-whole-number",
    title="A shard patch of the BatchSandbox requests a fraction of a device",
    why="A device plugin allocates only whole devices.",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidateResourceQuantityValue",
)
PATCH_CLAIM_SOURCE: Final = SANDBOX.rule(
    "sandbox/patch-claim-source",
    title="A shard patch of the BatchSandbox gives a claim a second source",
    why=(
        "The claim keeps the source of the template and gets the source of the patch. Kubernetes refuses a claim with "
        "two sources."
    ),
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validatePodResourceClaim",
)
PATCH_CLAIM: Final = SANDBOX.rule(
    "sandbox/patch-claim",
    title="A shard patch of the BatchSandbox uses a claim that the pod does not declare",
    why="A container has access only to the claims of its pod, so the API server refuses the pod.",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateResourceClaimNames",
)
PATCH_NULL: Final = SANDBOX_ADVICE.rule(
    "sandbox/patch-null",
    title="null in a shard patch of the BatchSandbox does not remove the field",
    why="The controller decodes the patched pod over the pod of the template, so removed values stay.",
    function="scaleBatchSandbox",
)
PATCH_DIRECTIVE: Final = SANDBOX_ADVICE.rule(
    "sandbox/patch-directive",
    title="`$patch` in a shard patch of the BatchSandbox leaves removed fields in the pod",
    why="The controller decodes the patched pod over the pod of the template, so removed values stay.",
    function="scaleBatchSandbox",
)
PATCH_ORDER: Final = SANDBOX_ADVICE.rule(
    "sandbox/patch-order",
    title="A shard patch of the BatchSandbox lists new containers first",
    why=(
        "After the patch, the controller decodes the patched pod over the pod of the template, and merges lists by "
        "index. So a new container gets fields of the template's container at the same index."
    ),
    function="scaleBatchSandbox",
)
PATCH_CONTAINER: Final = SANDBOX_ADVICE.rule(
    "sandbox/patch-container",
    title="A shard patch of the BatchSandbox adds a container that the template does not have",
    why="A name that the template does not have adds a new container. Usually the name is misspelt.",
    function="scaleBatchSandbox",
)
PATCH_DECODED_TWICE: Final = SANDBOX_ADVICE.rule(
    "sandbox/patch-decoded-twice",
    title="The controller mixes list items of the patch and the template, so the pod is invalid",
    why="The controller decodes the patched pod over the pod of the template, and merges items at the same index.",
    refused_by="the API server, when the pod is created",
    function="scaleBatchSandbox",
    fails="controller",
)
PATCH_FIELD: Final = SANDBOX_ADVICE.rule(
    "sandbox/patch-field",
    title="A shard patch of the BatchSandbox has a field that Pods do not have",
    why="The controller drops fields that no Pod has when it decodes the patch.",
    function="scaleBatchSandbox",
)

_MOST_NAMES: Final = 3
_LIST_NEW_LAST: Final = "list the containers of the template first in the patch"
_KEEP_ORDER: Final = "in the patch, keep the order of the template, put new entries last, and delete no entry"
_LEAVE_TO_PATCHES: Final = "remove these fields from spec.template, and set them only in the patches that need them"
_COUNTED: Final = ("device", "shared", "slice")
UNUSED_PATCHES: Final = SANDBOX_ADVICE.rule(
    "sandbox/unused-patches",
    title="There are more patches than replicas",
    why="The patch at index n is for the replica with index n. Patches for replicas that do not exist have no effect.",
    function="scaleBatchSandbox",
)


def validate_shard_patches(batch: BatchSandbox) -> Iterator[Problem]:
    """Check each patch, and the pod that the controller creates from the patch. With a Pool, patches are not read."""
    spec = batch.spec
    if spec.pool_ref:
        return
    template = ShardTemplate(spec.json.get("template"), batch.reading.deadline)
    names = [f"`{container.name}`" for container in spec.template.spec.all_containers() if container.name]
    for index, patch in enumerate(spec.shard_patches):
        notes = template.notes_on_patch(patch, spec.path("shardPatches", index))
        inheriting = {note.path for note in notes if note.what == "inherits"}
        for note in notes:
            if note.what != "added" or note.path not in inheriting:
                yield _problem_of_note(note, names) if note.certain else _problem_of_second_decoding(note)


def _problem_of_note(note: ShardPatchNote, names: Sequence[str]) -> Problem:
    match note.what:
        case "type":
            message = f"must be {note.text} because no pod can be created otherwise"
            fix = f"write {note.text}" + (" with the fields to change" if note.text == "an object" else "")
            return PATCH_TYPE.problem(note.path, message, fix)
        case "key":
            message = f"must have a {note.text} because a patch finds the entry to change by its {note.text}"
            return PATCH_KEY.problem(
                note.path,
                message,
                f"set the {note.text} of the entry of the template that the patch changes",
            )
        case "merge":
            return PATCH_MERGE.problem(
                note.path,
                f"cannot be merged into the template because {note.text}",
                note.fix,
            )
        case "image":
            named = f", or use the name of a container of the template ({either(names[:_MOST_NAMES])})" if names else ""
            message = "must have an image because the template has no container of this name"
            return PATCH_IMAGE.problem((*note.path, "name"), message, f"set an image{named}", note.text)
        case "resources":
            message = f"must keep the limit and the request of the device equal, but in the merged pod {note.text}"
            return PATCH_RESOURCES.problem(note.path, message, "set both the limit and the request in the patch")
        case "sources":
            message = f"merged with the template, claim {note.text}, but a claim must have exactly one"
            return PATCH_CLAIM_SOURCE.problem(note.path, message, note.fix)
        case "claim":
            message = "is not declared in spec.resourceClaims of the template or of the patch"
            return PATCH_CLAIM.problem(note.path, message, "declare the claim there, or correct the name", note.text)
        case _:
            return _advice_of_note(note)


def _advice_of_note(note: ShardPatchNote) -> Problem:
    """Return the problem of a patch that can be merged, but probably has another effect than intended."""
    match note.what:
        case "keeps":
            message = f"null does not remove the value `{note.text}` of the template, so the shard keeps this value"
            return PATCH_NULL.problem(
                note.path,
                message,
                "remove the field from spec.template, and set it only in the patches that need it",
            )
        case "directive" if note.text == "delete" and isinstance(note.path[-2], int):
            message = "removes the entry, but an entry that moves to this index gets fields of the removed entry"
            fix = "remove the entry from spec.template, and add the entry only in the patches that need it"
            return PATCH_DIRECTIVE.problem(note.path, message, fix, note.text)
        case "directive":
            message = "does not remove fields, so the shard keeps the fields of the template"
            return PATCH_DIRECTIVE.problem(note.path, message, _LEAVE_TO_PATCHES, note.text or None)
        case "inherits" | "moved":
            message = f"{note.text} of `{note.overwritten_item}`, the container of the template at the same index"
            fix = f"write `{note.overwritten_item}` to change that container, or {_LIST_NEW_LAST}"
            return PATCH_ORDER.problem(note.path, message, _KEEP_ORDER if note.what == "moved" else fix)
        case "added":
            message = "is not a container of the template, so the shard gets an additional container"
            return PATCH_CONTAINER.problem(
                (*note.path, "name"),
                message,
                "write the name of a container of the template, if the patch should change that container",
                note.text,
            )
        case _:
            fix = did_you_mean(note.text, "remove the field")
            return PATCH_FIELD.problem(note.path, "is ignored because a Pod has no such field", fix)


def _problem_of_second_decoding(note: ShardPatchNote) -> Problem:
    """Return a problem that appears when the controller decodes the merged pod over the template.

    Another release of the controller may decode the pod in another way.
    """
    if note.what not in ("image", "resources", "sources", "claim"):
        return _advice_of_note(note)
    fault = {
        "image": f"container `{note.text}` has no image",
        "sources": f"claim {note.text}",
        "claim": f"claim `{note.text}` is not declared",
    }.get(note.what, note.text)
    why, fix = "the controller keeps the fields of the template that the patch removes", _LEAVE_TO_PATCHES
    if note.overwritten_item:
        why = (
            f"the controller adds the fields of `{note.overwritten_item}`, the entry of the template at the same index"
        )
        fix = _KEEP_ORDER
    message = f"{fault} in the pod because {why}, so Kubernetes refuses the pod"
    return PATCH_DECODED_TWICE.problem(note.path, message, fix)


def validate_shard_devices(subject: Subject) -> Iterator[Problem]:
    """Report amounts of devices that are not whole numbers."""
    for container in Items(subject.fact("gpu")["patches"], subject.deadline):
        for each in Items(container["resources"], subject.deadline):
            written: JSON = each["request"] if each["limit"] is None else each["limit"]
            if (
                each["kind"] in _COUNTED
                and not each["whole"]
                and (amount := quantity.read_quantity_or_none(written)) is not None
            ):
                message = "must be a whole number because a device cannot be divided"
                yield PATCH_WHOLE_NUMBER.problem(each["path"], message, f"set {amount.value()}", written)


def advise_unused_patches(batch: BatchSandbox) -> Iterator[Problem]:
    """Warn of patches for replicas that do not exist."""
    spec, count = batch.spec, batch.spec.replicas
    for name in ("shardTaskPatches",) if spec.pool_ref else ("shardPatches", "shardTaskPatches"):
        if len(spec.json.get(name) or ()) > count:
            message = f"is ignored because the patch is for replica {count + 1}, but spec.replicas is {count}"
            yield UNUSED_PATCHES.problem(spec.path(name, count), message, "raise replicas, or remove the patch")
