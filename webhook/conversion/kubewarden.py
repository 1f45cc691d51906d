"""Converts AdmissionPolicy and ClusterAdmissionPolicy of Kubewarden with the module `cel-policy`.

The module's settings have the spec of a ValidatingAdmissionPolicy and the paramRef of a binding. The policy itself has
the resource rules. Source: kubewarden/cel-policy 2b0d1f32 README.md and internal/settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, NAME_LABEL
from webhook.apimachinery.paths import get
from webhook.conversion.native import (
    binding_of_policy,
    check_known_fields,
    conditions_with_valid_names,
    maps_at,
    name_of,
    native_policy,
)
from webhook.errors import NotConverted
from webhook.manifests.models import VALIDATING

GROUP: Final = "policies.kubewarden.io"
KINDS: Final = ("AdmissionPolicy", "ClusterAdmissionPolicy")
_MODULE: Final = re.compile(r"/cel-policy(?=[:@]|$)")
_SPEC_FIELDS: Final = (
    "backgroundAudit",
    "failurePolicy",
    "matchConditions",
    "matchPolicy",
    "mode",
    "module",
    "mutating",
    "namespaceSelector",
    "objectSelector",
    "policyServer",
    "rules",
    "settings",
    "sideEffects",
    "timeoutEvalSeconds",
    "timeoutSeconds",
)
_SETTINGS_FIELDS: Final = ("failurePolicy", "paramKind", "paramRef", "validations", "variables")
_ACTIONS: Final = {"protect": ["Deny"], "monitor": ["Audit"]}


def is_cel_policy(policy: JSON) -> bool:
    """Return whether an object is a policy of Kubewarden with the module `cel-policy`."""
    if not isinstance(policy, dict) or policy.get("kind") not in KINDS:
        return False
    is_own = str(policy.get("apiVersion", "")).rpartition("/")[0] == GROUP
    return is_own and _MODULE.search(str(get(policy, ("spec", "module"), ""))) is not None


def policy_and_binding(policy: JSON) -> tuple[JSON, JSON]:
    """Return the native policy and its binding.

    Raises:
        NotConverted: a part of the policy has no exact native form.
    """
    spec = check_known_fields(policy.get("spec"), _SPEC_FIELDS, ("spec",))
    settings = check_known_fields(spec.get("settings"), _SETTINGS_FIELDS, ("spec", "settings"))
    if spec.get("mutating") is True:
        raise NotConverted(("spec", "mutating"), "the module cel-policy does not mutate")
    mode = str(spec.get("mode") or "protect")
    if mode not in _ACTIONS:
        raise NotConverted(("spec", "mode"), f"mode `{mode}` is not protect or monitor")
    constraints = {key: spec[key] for key in ("namespaceSelector", "objectSelector", "matchPolicy") if spec.get(key)}
    conditions = conditions_with_valid_names(maps_at(spec, ("matchConditions",)))
    native = {
        "failurePolicy": settings.get("failurePolicy") or "Fail",
        "matchConstraints": {**constraints, "resourceRules": list(maps_at(spec, ("rules",)))},
        **({"matchConditions": conditions} if conditions else {}),
        **{key: settings[key] for key in ("paramKind", "variables", "validations") if settings.get(key)},
    }
    converted = native_policy(VALIDATING, name_of(policy), policy, native)
    return converted, binding_of_policy(converted, _binding_spec(policy, settings, mode))


def _binding_spec(policy: Mapping[str, Any], settings: Mapping[str, Any], mode: str) -> dict[str, Any]:
    bound: dict[str, Any] = {"validationActions": _ACTIONS[mode]}
    if settings.get("paramRef"):
        bound["paramRef"] = settings["paramRef"]
    if policy["kind"] == "AdmissionPolicy":
        namespace = get(policy, ("metadata", "namespace")) or "default"
        bound["matchResources"] = {"namespaceSelector": {"matchLabels": {NAME_LABEL: namespace}}}
    return bound
