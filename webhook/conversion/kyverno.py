"""Converts ValidatingPolicy and MutatingPolicy of policies.kyverno.io, and their namespaced kinds.

The specs are the specs of the native kinds, with additions. A binding gets the `validationActions`, and for a
namespaced policy the namespace. For a policy about Pods, policies for the built-in controllers are added, as Kyverno
generates them (pod_controllers.py). Source: kyverno/kyverno 111e07b pkg/cel/policies/{vpol,mpol}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, NAME_LABEL
from webhook.apimachinery.paths import FieldPath, get
from webhook.conversion.native import (
    adds_empty_value,
    binding_of_policy,
    check_known_fields,
    check_shape,
    conditions_with_valid_names,
    inline_variables,
    list_at,
    maps_at,
    name_of,
    native_policy,
    with_plain_functions,
)
from webhook.conversion.pod_controllers import variants_for_controllers
from webhook.errors import NotConverted
from webhook.manifests.models import MUTATING, VALIDATING

GROUP: Final = "policies.kyverno.io"
VALIDATING_KINDS: Final = ("ValidatingPolicy", "NamespacedValidatingPolicy")
MUTATING_KINDS: Final = ("MutatingPolicy", "NamespacedMutatingPolicy")
_SHARED_FIELDS: Final = ("failurePolicy", "matchConditions", "matchConstraints", "variables")
_VALIDATING_FIELDS: Final = (*_SHARED_FIELDS, "auditAnnotations", "validations")
_MUTATING_FIELDS: Final = (*_SHARED_FIELDS, "mutations", "reinvocationPolicy")
_TYPE_OF_POD: Final = re.compile(r"\bObject\.metadata\b")
_ADDED_FIELDS: Final = ("autogen", "evaluation", "webhookConfiguration")


def is_kyverno_policy(policy: JSON) -> bool:
    """Return whether an object has a kind of this module."""
    group = str(policy.get("apiVersion", "")).rpartition("/")[0] if isinstance(policy, dict) else ""
    return group == GROUP and policy.get("kind") in (*VALIDATING_KINDS, *MUTATING_KINDS)


def convert_kyverno_policy(policy: JSON) -> tuple[JSON, ...]:
    """Return the native policies of a policy, each followed by its binding.

    Raises:
        NotConverted: a part of the policy has no exact native form.
    """
    kind = str(policy.get("kind"))
    is_validating = kind in VALIDATING_KINDS
    own_fields = (*_VALIDATING_FIELDS, "validationActions") if is_validating else _MUTATING_FIELDS
    spec = check_known_fields(policy.get("spec"), (*own_fields, *_ADDED_FIELDS, "targetMatchConstraints"), ("spec",))
    _check_evaluation(spec)
    if spec.get("targetMatchConstraints"):
        raise NotConverted(
            ("spec", "targetMatchConstraints"),
            "mutates existing objects, but an admission policy mutates only the object of the request",
        )
    fields = _VALIDATING_FIELDS if is_validating else _MUTATING_FIELDS
    native = {key: spec[key] for key in fields if spec.get(key) is not None}
    check_shape(native_policy(VALIDATING if is_validating else MUTATING, name_of(policy), policy, native))
    return tuple(_policies_with_bindings(policy, native, spec, is_validating=is_validating))


def notes_on_policy(policy: JSON) -> tuple[str, ...]:
    """Return notes on what Kyverno does in addition to admission."""
    if get(policy, ("spec", "evaluation", "mutateExisting", "enabled")) is True:
        return ("it no longer mutates existing objects: admission sees only objects that are written",)
    return ()


def without_failing_variants(manifests: Sequence[JSON]) -> tuple[tuple[JSON, ...], tuple[str, ...]]:
    """Return the manifests that work, and notes on policies for pod controllers that fail for every object.

    Kyverno wraps `Object{…}` in the path of the template, and leaves types such as `Object.metadata` unchanged. A
    template has no such type, so the expression fails.
    """
    failing = {
        str(each["metadata"]["name"])
        for each in manifests
        for mutation in get(each, ("spec", "mutations")) or ()
        if _reads_type_of_pod_in_template(str(get(mutation, ("applyConfiguration", "expression")) or ""))
    }
    others = (
        each for each in manifests if not {get(each, ("metadata", "name")), get(each, ("spec", "policyName"))} & failing
    )
    note = "left out, because it fails for every object: a pod template has no type `Object.metadata`"
    return tuple(others), tuple(f"policy `{name}` is {note}" for name in sorted(failing))


def _reads_type_of_pod_in_template(text: str) -> bool:
    start = text.find("template{")
    return start >= 0 and _TYPE_OF_POD.search(text, start) is not None


def _policies_with_bindings(
    policy: JSON, native: Mapping[str, Any], spec: Mapping[str, Any], *, is_validating: bool
) -> Iterator[JSON]:
    name = name_of(policy)
    kind = VALIDATING if is_validating else MUTATING
    bound: dict[str, JSON] = {}
    if is_validating:
        bound["validationActions"] = list(list_at(spec, ("validationActions",))) or ["Deny"]
    if str(policy["kind"]).startswith("Namespaced"):
        namespace = get(policy, ("metadata", "namespace")) or "default"
        name = f"{namespace}-{name}"
        bound["matchResources"] = {"namespaceSelector": {"matchLabels": {NAME_LABEL: namespace}}}
    controllers = get(spec, ("autogen", "podControllers", "controllers"))
    if is_validating and native.get("matchConditions"):
        named = conditions_with_valid_names(maps_at(native, ("matchConditions",)))
        native = {**native, "matchConditions": named}
    for suffix, variant in (("", native), *variants_for_controllers(native, controllers)):
        plain = with_plain_expressions(variant)
        converted = native_policy(kind, f"{name}{suffix}", policy, plain if is_validating else _mutating_spec(plain))
        yield converted
        yield binding_of_policy(converted, bound)


def with_plain_expressions(value: Any) -> Any:
    """Replace Kyverno's simple functions in the expressions of a spec by plain CEL."""
    if isinstance(value, dict):
        return {
            key: with_plain_functions(item)
            if key.lower().endswith("expression") and isinstance(item, str)
            else with_plain_expressions(item)
            for key, item in value.items()
        }
    return [with_plain_expressions(item) for item in value] if isinstance(value, list) else value


def _mutating_spec(native: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a MutatingAdmissionPolicy.

    Raises:
        NotConverted: a mutation needs an empty value that an earlier mutation adds. An API server drops empty values
            between mutations.
    """
    variables = maps_at(native, ("variables",))
    conditions = [
        {**each, "expression": inline_variables(str(each.get("expression", "")), variables, _condition_path(index))}
        for index, each in enumerate(maps_at(native, ("matchConditions",)))
    ]
    mutations = maps_at(native, ("mutations",))
    for index, each in enumerate(mutations[:-1]):
        if adds_empty_value(str(get(each, ("jsonPatch", "expression")) or "")):
            reason = "adds an empty value for a later mutation, but an API server drops empty values between mutations"
            raise NotConverted(("spec", "mutations", index), reason)
    named = conditions_with_valid_names(conditions)
    return {"reinvocationPolicy": "Never", **native, **({"matchConditions": named} if named else {})}


def _condition_path(index: int) -> FieldPath:
    return ("spec", "matchConditions", index, "expression")


def _check_evaluation(spec: Mapping[str, Any]) -> None:
    """Refuse policies that are not about admission of Kubernetes objects.

    Raises:
        NotConverted: the policy is not evaluated at admission, or not on objects of Kubernetes.
    """
    path = ("spec", "evaluation")
    evaluation = check_known_fields(
        spec.get("evaluation"), ("admission", "background", "mode", "mutateExisting", "skipBackgroundRequests"), path
    )
    if evaluation.get("mode", "Kubernetes") != "Kubernetes":
        raise NotConverted(
            (*path, "mode"), f"mode {evaluation['mode']} is about other payloads than Kubernetes objects"
        )
    if get(evaluation, ("admission", "enabled")) is False:
        raise NotConverted((*path, "admission"), "the policy is not evaluated at admission")
