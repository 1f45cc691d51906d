"""Makes the CustomResourceDefinitions of the kinds of claimgate.dev, with structural schemas from their models.

A schema cannot find errors such as expressions that do not compile. These errors are in the status of each object.
Enumerations, required fields and keys of lists come from admissionregistration/v1 (k8s.io/api v0.36). Fields have no
defaults, so an object stays as it was applied, and GitOps tools find no difference.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON, plural_of_kind
from webhook.manifests import validation
from webhook.manifests.annotations import CONCERNS, MISSING, PHASES, STORED
from webhook.manifests.claimgate_kinds import (
    GROUP,
    MUTATING_POLICY,
    POLICY_BINDING,
    POLICY_EXCEPTION,
    SPECS,
    VALIDATING_POLICY,
    VERSION,
)
from webhook.manifests.policy_exceptions import PolicyExceptionSpec
from webhook.rules.decisions import SEVERITIES

Schema: TypeAlias = dict[str, Any]

LONGEST_EXPRESSION: Final = 16 << 10
"""The maximum number of characters of an expression. The longest expression of the shipped policies has a tenth of this
length.
"""
MOST_ENTRIES: Final = 100
"""The maximum number of entries of any list. API servers accept 64 matchConditions and 20 audit annotations."""
_EXPRESSIONS: Final = frozenset(("expression", "messageExpression", "valueExpression"))
_ENUMS: Final[dict[str, tuple[str, ...]]] = {
    "failurePolicy": validation.FAILURE_POLICIES,
    "matchPolicy": validation.MATCH_POLICIES,
    "scope": validation.SCOPES,
    "reason": (*validation.REASONS, *validation.OWN_REASONS),
    "reinvocationPolicy": validation.REINVOCATION_POLICIES,
    "patchType": ("ApplyConfiguration", "JSONPatch"),
    "parameterNotFoundAction": ("Allow", "Deny"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist"),
    "phase": PHASES,
    "missing": MISSING,
    "updates": ("spec",),
    "stored": STORED,
    "severity": tuple(SEVERITIES),
    "policyKind": (VALIDATING_POLICY, MUTATING_POLICY),
}
_ITEM_ENUMS: Final[dict[str, tuple[str, ...]]] = {
    "operations": validation.OPERATIONS,
    "validationActions": validation.ACTIONS,
    "concerns": CONCERNS,
    "expand": ("pods", "objects", "patches", "resources"),
}
_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "ValidatingPolicySpec": ("matchConstraints",),
    "MutatingPolicySpec": ("matchConstraints", "mutations", "reinvocationPolicy"),
    "PolicyBindingSpec": ("policyName",),
    "NamedRule": ("apiGroups", "apiVersions", "operations", "resources"),
    "ParamKind": ("apiVersion", "kind"),
    "MatchCondition": ("name", "expression"),
    "Variable": ("name", "expression"),
    "ValidationManifest": ("expression",),
    "AuditAnnotationManifest": ("key", "valueExpression"),
    "MutationManifest": ("patchType",),
    "PatchExpression": ("expression",),
    "LabelSelectorRequirement": ("key", "operator"),
}
_BY_NAME: Final = frozenset(("matchConditions", "variables"))
_SUMMARIES: Final = {
    VALIDATING_POLICY: "What claimgate refuses or warns of: a ValidatingAdmissionPolicy that may read facts.",
    MUTATING_POLICY: "What claimgate changes: a MutatingAdmissionPolicy that may read facts.",
    POLICY_BINDING: "Where a policy applies, with which parameters; without a binding a policy is not evaluated.",
    POLICY_EXCEPTION: "Objects of its namespace that may break rules until a day, within the bounds of claimgate.yaml.",
}
_CONDITION: Final[Schema] = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
        "message": {"type": "string", "maxLength": 32768},
    },
}
"""metav1.Condition (k8s.io/apimachinery v0.36)."""
_STATUS: Final[Schema] = {
    "type": "object",
    "description": "The results of claimgate for the object.",
    "properties": {
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _CONDITION,
        },
        "lastCompiled": {
            "type": "object",
            "description": "The last generation that compiled. Evaluated while the newest generation has errors.",
            "required": ["generation", "spec"],
            "properties": {
                "generation": {"type": "integer", "format": "int64", "minimum": 0},
                "spec": {"type": "string", "description": "The spec as JSON."},
            },
        },
    },
}


_SHORT_NAMES: Final = {
    VALIDATING_POLICY: "cgvpol",
    MUTATING_POLICY: "cgmpol",
    POLICY_BINDING: "cgbind",
    POLICY_EXCEPTION: "cgexc",
}
"""The short names differ from those of Kyverno, which also has the kinds ValidatingPolicy (vpol), MutatingPolicy
(mpol) and PolicyException (polex).
"""
_SPECS: Final = {**SPECS, POLICY_EXCEPTION: PolicyExceptionSpec}


def custom_resource_definitions() -> tuple[JSON, ...]:
    """Return the four CustomResourceDefinitions."""
    return tuple(_definition_of_kind(kind) for kind in _SPECS)


def _definition_of_kind(kind: str) -> JSON:
    resource = plural_of_kind(kind)
    schema = {
        "type": "object",
        "description": _SUMMARIES[kind],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _schema_of_spec(kind),
            "status": _status_of_kind(kind),
        },
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": _printer_columns(kind),
    }
    names = {
        "plural": resource,
        "singular": kind.lower(),
        "kind": kind,
        "listKind": f"{kind}List",
        "shortNames": [_SHORT_NAMES[kind]],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource}.{GROUP}", "labels": {"app.kubernetes.io/name": "claimgate"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind == POLICY_EXCEPTION else "Cluster",
            "names": {**names, "categories": ["claimgate"]},
            "versions": [version],
        },
    }


def _status_of_kind(kind: str) -> Schema:
    if kind != POLICY_EXCEPTION:
        return _STATUS
    return {**_STATUS, "properties": {"conditions": _STATUS["properties"]["conditions"]}}


def _printer_columns(kind: str) -> list[JSON]:
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    if kind == POLICY_EXCEPTION:
        return [
            {**_column_of_condition("InEffect"), "name": "In Effect"},
            {"name": "Expires", "type": "string", "jsonPath": ".spec.expires"},
            {"name": "Owner", "type": "string", "jsonPath": ".spec.owner"},
            {**_column_of_condition("Valid"), "priority": 1},
            age,
        ]
    of_kind = (
        [
            {"name": "Policy", "type": "string", "jsonPath": ".spec.policyName"},
            _column_of_condition("Compiled"),
            _column_of_condition("Bound"),
        ]
        if kind == POLICY_BINDING
        else [
            _column_of_condition("Compiled"),
            _column_of_condition("Registered"),
            {**_column_of_condition("Portable"), "priority": 1},
        ]
    )
    return [*of_kind, age]


def _column_of_condition(name: str) -> JSON:
    return {"name": name, "type": "string", "jsonPath": f'.status.conditions[?(@.type=="{name}")].status'}


def _schema_of_spec(kind: str) -> Schema:
    model = _SPECS[kind].model_json_schema()
    return _structural_schema(model, "", model.get("$defs", {}))


def _structural_schema(schema: Schema, name: str, models: dict[str, Schema]) -> Schema:
    """Convert a schema of pydantic for API servers: each value has one type, and references are resolved."""
    if "anyOf" in schema:  # a field that may be absent
        (not_null,) = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return _structural_schema({**not_null, **_description_of_schema(schema)}, name, models)
    if "$ref" in schema:
        return {
            **_structural_schema(models[schema["$ref"].rpartition("/")[2]], name, models),
            **_description_of_schema(schema),
        }
    converted: Schema = {"type": schema["type"], **_description_of_schema(schema)}
    if schema["type"] == "object":
        converted |= _schema_of_object(schema, models)
    elif schema["type"] == "array":
        bounds = {name: schema[name] for name in ("minItems",) if name in schema}
        max_size = schema.get("maxItems", MOST_ENTRIES)
        converted |= {"items": _structural_schema(schema["items"], "", models), "maxItems": max_size, **bounds}
        if name in _BY_NAME:
            converted |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        if name in _ITEM_ENUMS:
            converted["items"]["enum"] = list(_ITEM_ENUMS[name])
    elif schema["type"] == "string":
        converted |= {name: schema[name] for name in ("minLength", "format") if name in schema}
        is_choice = name in _ENUMS and "maxLength" not in schema
        max_size = schema.get("maxLength", _max_text_length(name))
        converted |= {"enum": list(_ENUMS[name])} if is_choice else {"maxLength": max_size}
    return converted


def _schema_of_object(schema: Schema, models: dict[str, Schema]) -> Schema:
    if "properties" not in schema:
        return {
            "additionalProperties": {"type": "string", "maxLength": _max_text_length("")},
            "maxProperties": MOST_ENTRIES,
        }
    fields = {name: _structural_schema(each, name, models) for name, each in schema["properties"].items()}
    required: list[str] = list(_REQUIRED.get(schema["title"]) or schema.get("required") or ())
    return {**({"required": required} if required else {}), "properties": fields}


def _max_text_length(name: str) -> int:
    return LONGEST_EXPRESSION if name in _EXPRESSIONS else 1024


def _description_of_schema(schema: Schema) -> Schema:
    """Return the description of a field for `kubectl explain`."""
    text = schema.get("description")
    return {"description": " ".join(text.split())} if text else {}
