"""Converts a Gatekeeper ConstraintTemplate with CEL and its constraint to a native policy and binding.

The constraint is the parameter object, `variables.params` its spec.parameters and `variables.anyObject` the object that
is, or on DELETE was, there; `match` becomes rules, selectors and matchConditions. Source: open-policy-agent/gatekeeper
3.23 pkg/drivers/k8scel/transform and pkg/drivers/k8scel/schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.admission.fixtures import RowOf
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.errors import InputError, Problem
from webhook.workloads.plurals import plural_of_kind

_GROUP = "admissionregistration.k8s.io/v1"
_ENGINE = "K8sNativeValidation"
_ACTIONS = {"deny": ["Deny"], "warn": ["Warn"], "dryrun": ["Audit"]}


def policy_and_binding(template: JSON, constraint: JSON, row: RowOf) -> Sequence[JSON]:
    """Return the native objects; a native policy and binding are returned unchanged.

    Raises:
        InputError: the template has no CEL.
    """
    if get(template, ("kind",)) == "ValidatingAdmissionPolicy":
        return template, constraint
    source = _source(template)
    if source is None:
        raise InputError(Problem(message=f"the template has no code for engine {_ENGINE}"))
    name = str(get(template, ("metadata", "name"), ""))
    kind = str(get(template, ("spec", "crd", "spec", "names", "kind"), ""))
    match = get(constraint, ("spec", "match"), {})
    policy: dict[str, Any] = {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": source.get("failurePolicy", "Fail"),
            "paramKind": {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": kind},
            "matchConstraints": {"resourceRules": list(_rules(match, row))},
            "matchConditions": [
                *_conditions(match),
                *(source.get("matchCondition") or source.get("matchConditions") or ()),
            ],
            "variables": [
                {"name": "params", "expression": "params.?spec.?parameters.orValue(null)"},
                {"name": "anyObject", "expression": 'request.operation == "DELETE" ? oldObject : object'},
                *(source.get("variables") or ()),
            ],
            "validations": source.get("validations") or [],
        },
    }
    return policy, _binding(name, constraint, match)


def non_cel_engines(template: JSON) -> str:
    """Return the languages of a ConstraintTemplate without CEL; "" for one with CEL, and for every other object."""
    if get(template, ("kind",)) != "ConstraintTemplate" or _source(template) is not None:
        return ""
    engines = (str(code.get("engine")) for code in _codes(template))
    return ", ".join(dict.fromkeys(engines)) or "Rego"


def _source(template: JSON) -> Mapping[str, Any] | None:
    """Return the CEL of a template."""
    return next((code.get("source") or {} for code in _codes(template) if code.get("engine") == _ENGINE), None)


def _codes(template: JSON) -> Iterator[Mapping[str, Any]]:
    for target in get(template, ("spec", "targets"), ()):
        yield from (code for code in target.get("code") or () if isinstance(code, dict))


def _binding(policy: str, constraint: JSON, match: Mapping[str, Any]) -> JSON:
    action = str(get(constraint, ("spec", "enforcementAction"), "deny"))
    resources = {
        key: match[name]
        for key, name in (("namespaceSelector", "namespaceSelector"), ("objectSelector", "labelSelector"))
        if match.get(name)
    }
    spec: dict[str, Any] = {
        "policyName": policy,
        "validationActions": _ACTIONS.get(action, ["Deny"]),
        "paramRef": {"name": get(constraint, ("metadata", "name"), ""), "parameterNotFoundAction": "Deny"},
    }
    if resources:
        spec["matchResources"] = resources
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{policy}-{get(constraint, ('metadata', 'name'), '')}"},
        "spec": spec,
    }


def _rules(match: Mapping[str, Any], row: RowOf) -> Iterator[JSON]:
    """Yield the kinds of a constraint as resource rules; without kinds it applies to everything."""
    scope = match.get("scope") or "*"
    for kinds in match.get("kinds") or [{"apiGroups": ["*"], "kinds": ["*"]}]:
        groups = kinds.get("apiGroups") or ["*"]
        yield {
            "apiGroups": groups,
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE", "CONNECT"]
            if kinds.get("kinds") == ["*"]
            else ["CREATE", "UPDATE", "DELETE"],
            "resources": [_resource(kind, groups, row) for kind in kinds.get("kinds") or ["*"]],
            "scope": scope,
        }


def _resource(kind: str, groups: Sequence[str], row: RowOf) -> str:
    if kind == "*":
        return "*"
    known = next(filter(None, (row(group, kind) for group in groups)), None)
    return known.resource if known else plural_of_kind(kind)


def _conditions(match: Mapping[str, Any]) -> Iterator[JSON]:
    """Yield `namespaces`, `excludedNamespaces` and `name`, with * at either end, as matchConditions."""
    where = "(has(request.namespace) ? request.namespace : '')"
    for key, negate in (("namespaces", False), ("excludedNamespaces", True)):
        if match.get(key):
            some = " || ".join(_glob_as_cel(where, pattern) for pattern in match[key])
            yield {"name": key.lower(), "expression": f"!({some})" if negate else some}
    if match.get("name"):
        yield {"name": "name", "expression": _glob_as_cel("(has(request.name) ? request.name : '')", match["name"])}


def _glob_as_cel(value: str, pattern: str) -> str:
    word = json.dumps(pattern.strip("*"))
    if pattern.startswith("*") and pattern.endswith("*"):
        return f"{value}.contains({word})"
    if pattern.startswith("*"):
        return f"{value}.endsWith({word})"
    return f"{value}.startsWith({word})" if pattern.endswith("*") else f"{value} == {word}"
