"""Converts a Gatekeeper ConstraintTemplate in CEL with one of its constraints to a native policy and binding.

The parameters of the constraint become the variable `params`, so the policy needs no CRD of Gatekeeper. `match` becomes
rules, selectors and matchConditions. `variables.anyObject` is the object, or on DELETE the old object. Source:
open-policy-agent/gatekeeper dd8507eb pkg/drivers/k8scel, pkg/mutation/match/match.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, plural_of_kind
from webhook.apimachinery.paths import get
from webhook.cel.syntax import rewrite
from webhook.cel.syntax.text import string_literal
from webhook.conversion.native import (
    NAMESPACE_IN_CEL,
    binding_of_policy,
    check_known_fields,
    conditions_with_valid_names,
    list_at,
    maps_at,
    name_of,
    native_policy,
    parsed_or_none,
)
from webhook.errors import NotConverted
from webhook.manifests.models import VALIDATING
from webhook.workloads.table import Table

TEMPLATE: Final = "ConstraintTemplate"
TEMPLATE_GROUP: Final = "templates.gatekeeper.sh"
CONSTRAINT_GROUP: Final = "constraints.gatekeeper.sh"
ENGINE: Final = "K8sNativeValidation"
EVERY_OPERATION: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
"""The operations for which `gator` evaluates templates. A webhook of Gatekeeper has the operations of the template, or
else CREATE and UPDATE."""
_DEFAULT_OPERATIONS: Final = ("CREATE", "UPDATE")
_ACTIONS: Final = {"deny": ["Deny"], "warn": ["Warn"], "dryrun": ["Audit"]}
_MATCH_FIELDS: Final = (
    "excludedNamespaces",
    "kinds",
    "labelSelector",
    "name",
    "namespaceSelector",
    "namespaces",
    "scope",
    "source",
)
_SOURCE_FIELDS: Final = (
    "failurePolicy",
    "generateVAP",
    "matchCondition",
    "matchConditions",
    "validations",
    "variables",
)
_MATCH_PATH: Final = ("spec", "match")


def is_template(value: JSON) -> bool:
    """Return whether an object is a ConstraintTemplate."""
    return _group(value) == TEMPLATE_GROUP and value.get("kind") == TEMPLATE


def is_constraint(value: JSON) -> bool:
    """Return whether an object is a constraint of some template."""
    return _group(value) == CONSTRAINT_GROUP


def kind_of_constraints(template: JSON) -> str:
    """Return the kind of the constraints of a template."""
    return str(get(template, ("spec", "crd", "spec", "names", "kind"), ""))


def _group(value: JSON) -> str:
    return str(value.get("apiVersion", "")).rpartition("/")[0] if isinstance(value, dict) else ""


def non_cel_engines(template: JSON) -> str:
    """Return the languages of a ConstraintTemplate without CEL; "" for other objects."""
    if get(template, ("kind",)) != TEMPLATE or _source(template) is not None:
        return ""
    engines = (str(code.get("engine")) for code in _codes(template))
    return ", ".join(dict.fromkeys(engines)) or "Rego"


def _source(template: JSON) -> Mapping[str, Any] | None:
    return next((code.get("source") or {} for code in _codes(template) if code.get("engine") == ENGINE), None)


def _codes(template: JSON) -> Iterator[Mapping[str, Any]]:
    for target in _targets(template):
        codes = target.get("code")
        yield from (code for code in (codes if isinstance(codes, list) else ()) if isinstance(code, dict))


def _targets(template: JSON) -> Iterator[Mapping[str, Any]]:
    targets = get(template, ("spec", "targets"))
    yield from (each for each in (targets if isinstance(targets, list) else ()) if isinstance(each, dict))


def policy_and_binding(
    template: JSON, constraint: JSON, table: Table, operations: Sequence[str] = ()
) -> tuple[JSON, JSON]:
    """Return the native policy and binding of a constraint. By default, `operations` come from the template.

    The constraint must have the defaults of its CRD.

    Raises:
        NotConverted: the template has no CEL, or a part has no exact native form.
    """
    source = _source(template)
    if source is None:
        raise NotConverted(("spec", "targets"), f"the template is in {non_cel_engines(template)}, not in CEL")
    source = check_known_fields(source, _SOURCE_FIELDS, ("spec", "targets"))
    _check_reads_no_constraint(source)
    match = check_known_fields(get(constraint, _MATCH_PATH), _MATCH_FIELDS, _MATCH_PATH)
    if match.get("source", "All") not in ("All", "Original", ""):
        raise NotConverted((*_MATCH_PATH, "source"), "is about objects that Gatekeeper expands")
    chosen = tuple(operations) or _operations_of_template(template)
    conditions = [*_conditions(match), *maps_at(source, ("matchCondition",)), *maps_at(source, ("matchConditions",))]
    spec = {
        "failurePolicy": source.get("failurePolicy", "Fail"),
        "matchConstraints": {"resourceRules": list(_rules(match, chosen, table))},
        **({"matchConditions": conditions_with_valid_names(conditions)} if conditions else {}),
        "variables": [
            {"name": "params", "expression": json_as_cel(get(constraint, ("spec", "parameters")))},
            {"name": "anyObject", "expression": 'request.operation == "DELETE" ? oldObject : object'},
            *maps_at(source, ("variables",)),
        ],
        "validations": list(maps_at(source, ("validations",))),
    }
    policy = native_policy(VALIDATING, f"{name_of(template)}-{name_of(constraint)}", template, spec)
    return policy, binding_of_policy(policy, _binding_spec(constraint, match))


def _operations_of_template(template: JSON) -> tuple[str, ...]:
    named = tuple(str(each) for target in _targets(template) for each in list_at(target, ("operations",)))
    return named or _DEFAULT_OPERATIONS


def _check_reads_no_constraint(source: Mapping[str, Any]) -> None:
    """Refuse expressions that read `params`, which is the whole constraint in Gatekeeper. `variables.params` are the
    parameters.

    Raises:
        NotConverted: an expression reads `params`.
    """
    keys = ("variables", "validations", "matchCondition", "matchConditions")
    entries = [each for key in keys for each in maps_at(source, (key,))]
    texts = (str(each.get(key) or "") for each in entries for key in ("expression", "messageExpression"))
    for text in texts:
        tree = parsed_or_none(text) if "params" in text else None
        if tree is not None and "params" in rewrite.all_names(tree):
            raise NotConverted(("spec", "targets"), "an expression reads `params`, which is the whole constraint")


def json_as_cel(value: JSON) -> str:
    """Return a JSON value as an expression of type dyn, because maps and lists may have values of several types."""
    if isinstance(value, dict):
        return (
            f"dyn({{{', '.join(f'{string_literal(str(key))}: {json_as_cel(item)}' for key, item in value.items())}}})"
        )
    if isinstance(value, list):
        return f"dyn([{', '.join(map(json_as_cel, value))}])"
    return f"dyn({string_literal(value) if isinstance(value, str) else json.dumps(value)})"


def _binding_spec(constraint: JSON, match: Mapping[str, Any]) -> dict[str, Any]:
    action = str(get(constraint, ("spec", "enforcementAction"), "deny"))
    if action not in _ACTIONS:
        raise NotConverted(("spec", "enforcementAction"), f"action `{action}` is not deny, warn or dryrun")
    resources = {
        key: match[name]
        for key, name in (("namespaceSelector", "namespaceSelector"), ("objectSelector", "labelSelector"))
        if match.get(name)
    }
    return {"validationActions": _ACTIONS[action], **({"matchResources": resources} if resources else {})}


def _rules(match: Mapping[str, Any], operations: Sequence[str], table: Table) -> Iterator[JSON]:
    """Yield the resource rules of a constraint. A constraint without kinds applies to all kinds."""
    scope = match.get("scope") if match.get("scope") in ("Cluster", "Namespaced") else "*"
    for index, each in enumerate(list_at(match, ("kinds",)) or [{}]):
        kinds = check_known_fields(each, ("apiGroups", "kinds"), (*_MATCH_PATH, "kinds", index))
        groups = list(list_at(kinds, ("apiGroups",))) or ["*"]
        named = list(list_at(kinds, ("kinds",))) or ["*"]
        is_any = "*" in named
        yield {
            "apiGroups": groups,
            "apiVersions": ["*"],
            "operations": [each for each in operations if is_any or each != "CONNECT"] or list(operations),
            "resources": ["*"] if is_any else [name for kind in named for name in _resources(str(kind), groups, table)],
            "scope": scope,
        }


def _resources(kind: str, groups: Sequence[str], table: Table) -> Iterator[str]:
    row = next(filter(None, (table.row(str(group), kind) for group in groups)), None)
    resource = row.resource if row else plural_of_kind(kind)
    yield resource
    if resource == "pods":
        yield "pods/ephemeralcontainers"


def _conditions(match: Mapping[str, Any]) -> Iterator[JSON]:
    """Yield matchConditions for `namespaces`, `excludedNamespaces` and `name`. `*` may be at both ends.

    Both conditions about namespaces are true for every cluster-scoped object.
    """
    for key, negate in (("namespaces", ""), ("excludedNamespaces", "!")):
        if patterns := list_at(match, (key,)):
            some = " || ".join(_glob_as_cel("n", str(pattern)) for pattern in patterns)
            yield {"name": key.lower(), "expression": f"[{NAMESPACE_IN_CEL}].exists(n, n == '' || {negate}({some}))"}
    if name := str(match.get("name") or ""):
        generated = (
            f" || ([object, oldObject].exists(o, o != null && {_generated(name)}))" if name.endswith("*") else ""
        )
        named = _glob_as_cel("n", name)
        expression = f"[has(request.name) ? request.name : ''].exists(n, n != '' && {named}){generated}"
        yield {"name": "name", "expression": expression}


def _generated(pattern: str) -> str:
    return f"o.?metadata.?generateName.orValue('') != '' && {_glob_as_cel('string(o.metadata.generateName)', pattern)}"


def _glob_as_cel(value: str, pattern: str) -> str:
    word = json.dumps(pattern.strip("*"))
    if pattern.startswith("*") and pattern.endswith("*"):
        return f"{value}.contains({word})"
    if pattern.startswith("*"):
        return f"{value}.endsWith({word})"
    return f"{value}.startsWith({word})" if pattern.endswith("*") else f"{value} == {word}"


def with_defaults_of_template(constraint: JSON, template: JSON) -> JSON:
    """Return a constraint with the defaults of its parameters, which an API server sets before storing."""
    schema = get(template, ("spec", "crd", "spec", "validation", "openAPIV3Schema"))
    parameters = get(constraint, ("spec", "parameters"))
    if schema is None or parameters is None:
        return constraint
    return {**constraint, "spec": {**constraint["spec"], "parameters": _with_defaults(parameters, schema)}}


def _with_defaults(value: JSON, schema: JSON) -> JSON:
    if isinstance(value, list):
        return [_with_defaults(item, get(schema, ("items",)) or {}) for item in value]
    properties = get(schema, ("properties",)) or {}
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    defaults = {
        key: schema_of_field["default"]
        for key, schema_of_field in properties.items()
        if isinstance(schema_of_field, dict) and "default" in schema_of_field
    }
    return {key: _with_defaults(item, properties.get(key) or {}) for key, item in (defaults | value).items()}
