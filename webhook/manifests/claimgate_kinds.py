"""Reads ValidatingPolicy, MutatingPolicy and PolicyBinding of claimgate.dev/v1alpha1, which a cluster stores.

API servers refuse native policies that read facts or deny with reason BadRequest, so these kinds are needed. These
kinds have the spec of the native kinds, with fields in place of the annotations `claimgate.dev/…`. Each object is
converted to the native manifest. Errors name the fields of the object.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, ValidationError

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.manifests.annotations import PREFIX
from webhook.manifests.models import (
    GROUP as NATIVE_GROUP,
)
from webhook.manifests.models import (
    MUTATING,
    VALIDATING,
    Manifest,
    MutatingSpec,
    Object,
    ShapeError,
    ValidatingBindingSpec,
    ValidatingSpec,
    parse_manifest,
    shape_error,
    without_nulls,
)

GROUP: Final = "claimgate.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
VALIDATING_POLICY: Final = "ValidatingPolicy"
MUTATING_POLICY: Final = "MutatingPolicy"
POLICY_BINDING: Final = "PolicyBinding"
POLICY_EXCEPTION: Final = "PolicyException"
"""The kind that policy_exceptions.py reads. This kind has no native form."""
KINDS: Final = (VALIDATING_POLICY, MUTATING_POLICY, POLICY_BINDING)
"""The kinds with a native form."""
NATIVE: Final = {VALIDATING_POLICY: VALIDATING, MUTATING_POLICY: MUTATING}
"""The native kind for each kind of policy."""

Names: TypeAlias = list[str]

_EXPAND: Final = (
    "What the policy is also evaluated on, besides the objects that its rules match: pods (the pod templates of "
    "workloads of every kind), objects (objects inside other objects), patches or resources."
)
_FACTS: Final = "The facts that expressions read, such as gpu: `claimgate policies rules` and docs/facts.md list them."
_CHECKS: Final = "The groups of checks that fill the variable `problems`."
_MISSING: Final = "The result of a rule that needs an object that does not exist."
_UPDATES: Final = "spec: the policy skips updates that do not change the spec of the object."
_STORED: Final = (
    "Updates of objects that are stored with a problem. warn, the default: an update that leaves the problem unchanged "
    "gets a warning. deny: such an update is denied. With both values, updates of only status, finalizers or "
    "managedFields pass unless the policy names the changed field. Deletions pass unless the policy names DELETE. "
    "Updates of an object that is being deleted always pass."
)
_CONCERNS: Final = (
    "Parts of a Pod, or of an object that creates Pods. The policy applies only to objects with at least one of these "
    "parts. docs/registration.md lists their names."
)
_ANY_POD: Final = "Rules of the policy that also apply to Pods without any part that `concerns` names."
_PHASE: Final = "The phase in which the policy is evaluated; default: validate."
_REGISTERED: Final = "false: audit, replay and test evaluate the policy, and webhook configurations leave it out."


class ValidatingPolicySpec(ValidatingSpec):
    """A ValidatingAdmissionPolicy that may read facts and deny with reason BadRequest."""

    expand: Names = Field(default=[], description=_EXPAND)
    facts: Names = Field(default=[], description=_FACTS)
    checks: Names = Field(default=[], description=_CHECKS)
    missing: str = Field(default="", description=_MISSING)
    updates: str = Field(default="", description=_UPDATES)
    stored: str = Field(default="", description=_STORED)
    concerns: Names = Field(default=[], description=_CONCERNS)
    any_pod: Names = Field(default=[], description=_ANY_POD)
    phase: str = Field(default="", description=_PHASE)
    registered: bool = Field(default=True, description=_REGISTERED)
    severity: str = Field(default="", description="How severe it is to break the policy, for reports.")
    category: str = Field(default="", description="What the policy is about, for reports.")
    docs: str = Field(default="", description="Address of a page about the policy.")


class MutatingPolicySpec(MutatingSpec):
    """A MutatingAdmissionPolicy that may read facts."""

    expand: Names = Field(default=[], description=_EXPAND)
    facts: Names = Field(default=[], description=_FACTS)
    missing: str = Field(default="", description=_MISSING)
    updates: str = Field(default="", description=_UPDATES)
    stored: str = Field(default="", description=_STORED)
    concerns: Names = Field(default=[], description=_CONCERNS)
    any_pod: Names = Field(default=[], description=_ANY_POD)
    severity: str = Field(default="", description="How severe it is to break the policy, for reports.")
    category: str = Field(default="", description="What the policy is about, for reports.")
    docs: str = Field(default="", description="Address of a page about the policy.")


class PolicyBindingSpec(ValidatingBindingSpec):
    """Where a policy applies, and with which parameters. validationActions are only for a ValidatingPolicy."""

    policy_kind: Literal["ValidatingPolicy", "MutatingPolicy"] = Field(
        default="ValidatingPolicy", description="The kind of the policy; ValidatingPolicy if it is not set."
    )


class _ValidatingPolicy(Object):
    spec: ValidatingPolicySpec


class _MutatingPolicy(Object):
    spec: MutatingPolicySpec


class _PolicyBinding(Object):
    spec: PolicyBindingSpec


SPECS: Final[dict[str, type[ValidatingPolicySpec | MutatingPolicySpec | PolicyBindingSpec]]] = {
    VALIDATING_POLICY: ValidatingPolicySpec,
    MUTATING_POLICY: MutatingPolicySpec,
    POLICY_BINDING: PolicyBindingSpec,
}
_MODELS: Final[dict[str, type[Object]]] = {
    VALIDATING_POLICY: _ValidatingPolicy,
    MUTATING_POLICY: _MutatingPolicy,
    POLICY_BINDING: _PolicyBinding,
}
_FIELDS: Final = {
    "expand": "expand",
    "facts": "facts",
    "checks": "checks",
    "missing": "missing",
    "updates": "updates",
    "stored": "stored",
    "concerns": "concerns",
    "anyPod": "any-pod",
    "phase": "phase",
    "registered": "registered",
    "severity": "severity",
    "category": "category",
    "docs": "docs",
}
"""The annotation for each field of spec."""
_WRITTEN: Final = {PREFIX + annotation: name for name, annotation in _FIELDS.items()}


def is_claimgate_kind(value: JSON) -> bool:
    """Return whether an object has one of these kinds, in any version."""
    is_object = isinstance(value, dict) and isinstance(value.get("apiVersion"), str)
    return is_object and value["apiVersion"].partition("/")[0] == GROUP and value.get("kind") in KINDS


def native_manifest(value: JSON) -> JSON:
    """Return the native manifest of an object of these kinds.

    Raises:
        ShapeError: the object has unknown fields or wrong types. The error lists all mistakes, with paths of the
            object.
    """
    checked = _without_nulls_and_status(value)
    kind, spec = value["kind"], dict(checked.get("spec") or {})
    metadata = {**checked.get("metadata", {})}
    if kind == POLICY_BINDING:
        bound = NATIVE[spec.pop("policyKind", VALIDATING_POLICY)]
        return {**checked, "apiVersion": f"{NATIVE_GROUP}/v1", "kind": f"{bound}Binding", "spec": spec}
    annotations = {**(metadata.get("annotations") or {}), f"{PREFIX}stored": "warn"}
    for name, annotation in _FIELDS.items():
        if name in spec:
            annotations[PREFIX + annotation] = _scalar_as_text(spec.pop(name))
    return {
        **checked,
        "apiVersion": f"{NATIVE_GROUP}/v1",
        "kind": NATIVE[kind],
        "metadata": {**metadata, "annotations": annotations},
        "spec": spec,
    }


def parse_claimgate_kind(value: JSON) -> Manifest:
    """Read one object as the parsed native manifest. Raise ShapeError as `native_manifest` does."""
    return parse_manifest(native_manifest(value))


def path_in_claimgate_object(path: FieldPath) -> FieldPath:
    """Return the path in the object for a path in the native manifest."""
    if path[:2] == ("metadata", "annotations") and len(path) > 2 and path[2] in _WRITTEN:
        return ("spec", _WRITTEN[str(path[2])])
    return path


def _without_nulls_and_status(value: JSON) -> Any:
    """Return the object without nulls and status. Refuse unknown fields."""
    if value.get("apiVersion") != API_VERSION:
        raise ShapeError(((("apiVersion",), f"unknown version `{value.get('apiVersion')}`; expected {API_VERSION}"),))
    manifest = {key: item for key, item in without_nulls(value).items() if key != "status"}
    try:
        _MODELS[value["kind"]].model_validate(manifest)
    except ValidationError as error:
        raise shape_error(error) from None
    problems = [*_errors_of_annotations(manifest), *_errors_of_validation_actions(manifest)]
    if problems:
        raise ShapeError(tuple(problems))
    return manifest


def _errors_of_annotations(value: JSON) -> list[tuple[FieldPath, str]]:
    """Refuse annotations that are fields of these kinds, so each setting is in only one place."""
    annotations = (value.get("metadata") or {}).get("annotations") or {}
    return [
        (("metadata", "annotations", key), f"is a field of this kind: write spec.{_WRITTEN.get(key, '…')}")
        for key in annotations
        if key.startswith(PREFIX)
    ]


def _errors_of_validation_actions(value: JSON) -> list[tuple[FieldPath, str]]:
    spec = value["spec"]
    if value["kind"] == POLICY_BINDING and spec.get("policyKind") == MUTATING_POLICY and "validationActions" in spec:
        return [(("spec", "validationActions"), "a MutatingPolicy has no such field: remove it")]
    return []


def _scalar_as_text(value: JSON) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, list) else str(value)
