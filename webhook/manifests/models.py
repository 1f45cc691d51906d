"""Declares the fields of policy manifests: ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings.

validation.py has the other errors of API servers. Unknown fields are errors, as in `kubectl apply --validate=strict`.
Source: k8s.io/api v0.36 admissionregistration/v1/types.go. v1beta1 and v1alpha1 have the same fields.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.text.model_errors import describe_model_error, is_unknown_field_error

GROUP = "admissionregistration.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
VALIDATING, VALIDATING_BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
MUTATING, MUTATING_BINDING = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"


class _Manifest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True, defer_build=True
    )


class Metadata(_Manifest):
    """metav1.ObjectMeta (k8s.io/apimachinery v0.36 pkg/apis/meta/v1/types.go). Fields that policies do not need are
    accepted and not read.
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    generate_name: Any = None
    self_link: Any = None
    uid: Any = None
    resource_version: Any = None
    generation: Any = None
    creation_timestamp: Any = None
    deletion_timestamp: Any = None
    deletion_grace_period_seconds: Any = None
    owner_references: Any = None
    finalizers: Any = None
    managed_fields: Any = None


class LabelSelectorRequirement(_Manifest):
    """metav1.LabelSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(_Manifest):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NamedRule(_Manifest):
    """NamedRuleWithOperations: resources, operations and names."""

    api_groups: list[str] = []
    api_versions: list[str] = []
    operations: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []
    scope: str | None = None


class MatchResources(_Manifest):
    """matchConstraints of a policy, matchResources of a binding."""

    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: list[NamedRule] = []
    exclude_resource_rules: list[NamedRule] = []
    match_policy: str = "Equivalent"


class ParamKind(_Manifest):
    """The kind of a policy's parameters."""

    api_version: str = ""
    kind: str = ""


class ParamRef(_Manifest):
    """The parameters of a binding."""

    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class MatchCondition(_Manifest):
    """A named condition on the request."""

    name: str = ""
    expression: str = ""


class Variable(_Manifest):
    """A named expression, evaluated when first used."""

    name: str = ""
    expression: str = ""


class ValidationManifest(_Manifest):
    """One rule of a validating policy."""

    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class AuditAnnotationManifest(_Manifest):
    """A key of the audit log and an expression for its value."""

    key: str = ""
    value_expression: str = ""


class PatchExpression(_Manifest):
    """The expression of a jsonPatch or an applyConfiguration."""

    expression: str = ""


class MutationManifest(_Manifest):
    """One change of a mutating policy."""

    patch_type: str = ""
    apply_configuration: PatchExpression | None = None
    json_patch: PatchExpression | None = None


class PolicySpec(_Manifest):
    """The common parts of both kinds of policy."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    failure_policy: str = "Fail"
    match_conditions: list[MatchCondition] = []
    variables: list[Variable] = []


class ValidatingSpec(PolicySpec):
    """spec of a ValidatingAdmissionPolicy."""

    validations: list[ValidationManifest] = []
    audit_annotations: list[AuditAnnotationManifest] = []


class MutatingSpec(PolicySpec):
    """spec of a MutatingAdmissionPolicy."""

    mutations: list[MutationManifest] = []
    reinvocation_policy: str = ""


class MutatingBindingSpec(_Manifest):
    """spec of a MutatingAdmissionPolicyBinding."""

    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None


class ValidatingBindingSpec(MutatingBindingSpec):
    """spec of a ValidatingAdmissionPolicyBinding."""

    validation_actions: list[str] = []


class Object(_Manifest):
    """The fields of every kind except spec."""

    api_version: str
    kind: str
    metadata: Metadata = Metadata()
    status: dict[str, Any] | None = None


class ValidatingPolicyManifest(Object):
    """A ValidatingAdmissionPolicy."""

    spec: ValidatingSpec = Field(default_factory=ValidatingSpec)


class MutatingPolicyManifest(Object):
    """A MutatingAdmissionPolicy."""

    spec: MutatingSpec = Field(default_factory=MutatingSpec)


class ValidatingBindingManifest(Object):
    """A ValidatingAdmissionPolicyBinding."""

    spec: ValidatingBindingSpec = Field(default_factory=ValidatingBindingSpec)


class MutatingBindingManifest(Object):
    """A MutatingAdmissionPolicyBinding."""

    spec: MutatingBindingSpec = Field(default_factory=MutatingBindingSpec)


PolicyManifest: TypeAlias = ValidatingPolicyManifest | MutatingPolicyManifest
BindingManifest: TypeAlias = ValidatingBindingManifest | MutatingBindingManifest
Manifest: TypeAlias = PolicyManifest | BindingManifest

MODELS: dict[str, type[Manifest]] = {
    VALIDATING: ValidatingPolicyManifest,
    MUTATING: MutatingPolicyManifest,
    VALIDATING_BINDING: ValidatingBindingManifest,
    MUTATING_BINDING: MutatingBindingManifest,
}


class ShapeError(ValueError):
    """A manifest has unknown fields or wrong types. `problems` has pairs of path and text."""

    def __init__(self, problems: tuple[tuple[FieldPath, str], ...]) -> None:
        super().__init__("; ".join(text for _, text in problems))
        self.problems = problems


def parse_manifest(value: JSON) -> Manifest:
    """Read one object of a kind in MODELS.

    Raises:
        ShapeError: the object has unknown fields or wrong types. The error lists all mistakes.
    """
    model = MODELS[value["kind"]]
    try:
        return model.model_validate(without_nulls(value))
    except ValidationError as error:
        raise shape_error(error) from None


def shape_error(error: ValidationError) -> ShapeError:
    """Convert an error of pydantic to mistakes with texts for authors of YAML."""
    return ShapeError(tuple(_path_and_message(item) for item in error.errors(include_url=False)))


def without_nulls(value: JSON) -> JSON:
    """Return a value without its null fields, which API servers treat as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _path_and_message(error: Any) -> tuple[FieldPath, str]:
    path: FieldPath = tuple(error["loc"])
    if is_unknown_field_error(error):
        return path, f"unknown field `{path[-1]}`{_sentence_with_suggestion(path)}"
    return path, describe_model_error(error)


def _sentence_with_suggestion(path: FieldPath) -> str:
    from difflib import get_close_matches

    names = _all_field_names()
    if path[-1] in names:
        return "; remove it, because it belongs to another place or kind"
    close = get_close_matches(str(path[-1]), sorted(names), n=1, cutoff=0.75)
    return f"; did you mean `{close[0]}`?" if close else "; remove it, or check its indentation"


def _all_field_names() -> set[str]:
    names: set[str] = set()
    pending: list[type[BaseModel]] = [_Manifest]
    while pending:
        model = pending.pop()
        names.update(field.alias or name for name, field in model.model_fields.items())
        pending.extend(model.__subclasses__())
    return names
