"""Converts ClusterPolicy and Policy of kyverno.io if all of their rules are `validate.cel`.

Each rule becomes a ValidatingAdmissionPolicy with a binding. `match` becomes resource rules, selectors and
matchConditions. For a rule about Pods, rules for pod controllers are added, as Kyverno generates them. Conditions
without a native form, such as roles of the user, are refused. Source: kyverno/kyverno 111e07b pkg/autogen/v1,
pkg/engine/utils/match.go, pkg/engine/handlers/validation/validate_cel.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, NAME_LABEL, plural_of_kind
from webhook.apimachinery.paths import FieldPath, get
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
)
from webhook.conversion.pod_controllers import TEMPLATE, TEMPLATE_OF_CRON_JOB, with_texts
from webhook.errors import NotConverted
from webhook.manifests.models import VALIDATING
from webhook.workloads.table import Table

GROUP: Final = "kyverno.io"
KINDS: Final = ("ClusterPolicy", "Policy")
OF_MATCH: Final = "kyverno-match-"
"""Prefix of the names of matchConditions that come from a part of `match` or `exclude`."""
_CONTROLLERS: Final = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}
_CRON_JOB: Final = "CronJob"
_AUTOGEN_ANNOTATION: Final = "pod-policies.kyverno.io/autogen-controllers"
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?|\*")
_ALL_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_SPEC_FIELDS: Final = (
    "admission",
    "applyRules",
    "background",
    "emitWarning",
    "failurePolicy",
    "rules",
    "validationFailureAction",
    "webhookConfiguration",
    "webhookTimeoutSeconds",
)
_RULE_FIELDS: Final = (
    "celPreconditions",
    "exclude",
    "match",
    "name",
    "reportProperties",
    "skipBackgroundRequests",
    "validate",
)
_PARAM_REF_FIELDS: Final = ("name", "namespace", "parameterNotFoundAction", "selector")
_USER_FIELDS: Final = ("clusterRoles", "roles", "subjects")
_FILTER_FIELDS: Final = ("kinds", "name", "names", "namespaceSelector", "namespaces", "operations", "selector")


def is_cel_policy(policy: JSON) -> bool:
    """Return whether an object is a ClusterPolicy or Policy with a rule in CEL."""
    if not isinstance(policy, dict) or policy.get("kind") not in KINDS:
        return False
    rules = get(policy, ("spec", "rules"))
    is_own = str(policy.get("apiVersion", "")).rpartition("/")[0] == GROUP
    return (
        is_own and isinstance(rules, list) and any(isinstance(get(each, ("validate", "cel")), dict) for each in rules)
    )


def rules_of_policy(policy: JSON, table: Table) -> Iterator[tuple[str, tuple[JSON, JSON]]]:
    """Yield for each rule its name, a native policy, and the binding of the policy. The rules that Kyverno generates
    for pod controllers are included.

    Raises:
        NotConverted: a part of the policy has no exact native form.
    """
    spec = check_known_fields(policy.get("spec"), _SPEC_FIELDS, ("spec",))
    if spec.get("admission") is False:
        raise NotConverted(("spec", "admission"), "the policy is not evaluated at admission")
    if spec.get("applyRules") == "One":
        raise NotConverted(("spec", "applyRules"), "the first rule that matches ends the evaluation")
    rules = maps_at(spec, ("rules",))
    for index, rule in enumerate(rules):
        check_known_fields(rule, _RULE_FIELDS, ("spec", "rules", index))
        if not isinstance(get(rule, ("validate", "cel")), dict):
            raise NotConverted(("spec", "rules", index), "the rule is not in CEL")
    several = len(rules) > 1
    for index, rule in enumerate(rules):
        yield str(rule.get("name", "")), _policy_and_binding(policy, rule, index, table, is_named=several)
    for index, rule in _rules_for_controllers(policy, rules):
        yield str(rule.get("name", "")), _policy_and_binding(policy, rule, index, table, is_named=True)


def _policy_and_binding(
    policy: JSON, rule: Mapping[str, Any], index: int, table: Table, *, is_named: bool
) -> tuple[JSON, JSON]:
    spec, path = policy["spec"], ("spec", "rules", index)
    validate = check_known_fields(
        rule.get("validate"), ("allowExistingViolations", "cel", "failureAction", "message"), (*path, "validate")
    )
    cel = check_known_fields(
        validate.get("cel"),
        ("auditAnnotations", "expressions", "generate", "paramKind", "paramRef", "variables"),
        (*path, "validate", "cel"),
    )
    name = name_of(policy) + (f"-{rule.get('name', '')}" if is_named else "")
    constraints, conditions, bound = _match(policy, rule, path, table)
    conditions += conditions_with_valid_names(maps_at(rule, ("celPreconditions",)))
    shared = validate.get("message")
    native: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        **({"matchConditions": conditions} if conditions else {}),
        **{key: cel[key] for key in ("paramKind", "variables", "auditAnnotations") if cel.get(key)},
        "validations": [
            {**each, **({"message": shared} if shared and not each.get("message") else {})}
            for each in maps_at(cel, ("expressions",))
        ],
    }
    converted = native_policy(VALIDATING, re.sub(r"[^a-z0-9.-]+", "-", name.lower()), policy, native)
    if cel.get("paramRef"):
        reference = check_known_fields(cel["paramRef"], _PARAM_REF_FIELDS, (*path, "validate", "cel", "paramRef"))
        bound["paramRef"] = {"parameterNotFoundAction": "Deny", **reference}
    bound["validationActions"] = _actions(spec, validate, path)
    return converted, binding_of_policy(converted, bound)


def _actions(spec: Mapping[str, Any], validate: Mapping[str, Any], path: FieldPath) -> list[str]:
    action = str(validate.get("failureAction") or spec.get("validationFailureAction") or "Audit").lower()
    if action not in ("enforce", "audit"):
        raise NotConverted((*path, "validate", "failureAction"), f"unknown action `{action}`")
    if action == "enforce":
        return ["Deny"]
    return ["Audit", "Warn"] if spec.get("emitWarning") else ["Audit"]


def _match(
    policy: JSON, rule: Mapping[str, Any], path: FieldPath, table: Table
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, JSON]]:
    """Return matchConstraints, matchConditions and the spec of a binding for `match` and `exclude` of a rule."""
    filters = list(_filters(rule.get("match"), (*path, "match")))
    if not filters:
        raise NotConverted((*path, "match"), "matches nothing")
    constraints: dict[str, Any] = {
        "resourceRules": [each for at, resources in filters for each in _resource_rules(resources, at, table)]
    }
    conditions: list[dict[str, Any]] = []
    for at, resources in filters:
        limiting_fields = [key for key in ("namespaces", "namespaceSelector", "selector") if resources.get(key)]
        if limiting_fields and len(filters) > 1:
            raise NotConverted(
                (*at, limiting_fields[0]), "is set for one of several filters, but in a native policy it applies to all"
            )
        if resources.get("namespaces"):
            conditions.append(
                {"name": f"{OF_MATCH}namespaces", "expression": _in_namespaces(list_at(resources, ("namespaces",)))}
            )
        if resources.get("namespaceSelector"):
            constraints["namespaceSelector"] = resources["namespaceSelector"]
        if resources.get("selector"):
            constraints["objectSelector"] = _plain_selector(resources["selector"], (*at, "selector"))
    for number, (at, resources) in enumerate(_filters(rule.get("exclude"), (*path, "exclude"))):
        if set(resources) != {"namespaces"}:
            raise NotConverted(at, "excludes by other fields than namespaces")
        expression = f"!({_in_namespaces(list_at(resources, ('namespaces',)))})"
        conditions.append({"name": f"{OF_MATCH}exclude-{number}", "expression": expression})
    bound: dict[str, JSON] = {}
    if policy["kind"] == "Policy":
        namespace = get(policy, ("metadata", "namespace")) or "default"
        bound["matchResources"] = {"namespaceSelector": {"matchLabels": {NAME_LABEL: namespace}}}
    return constraints, conditions, bound


def _filters(block: JSON, path: FieldPath) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Yield the `resources` of a match or exclude block, with their paths.

    Raises:
        NotConverted: the block selects by user, or has several filters that must all match.
    """
    for each in (block, *maps_at(block, ("any",)), *maps_at(block, ("all",))):
        if named := [key for key in _USER_FIELDS if get(each, (key,))]:
            raise NotConverted(path, f"selects users by {' and '.join(named)}, which an expression cannot read")
    written = check_known_fields(block, ("any", "all", "resources", *_USER_FIELDS), path)
    if len(list_at(written, ("all",))) > 1:
        raise NotConverted((*path, "all"), "several filters must all match, but a native policy has only one")
    for key in ("any", "all"):
        for index, each in enumerate(list_at(written, (key,))):
            at = (*path, key, index)
            yield at, _known_resources(check_known_fields(each, ("resources", *_USER_FIELDS), at), at)
    if "resources" in written:
        yield path, _known_resources(written, path)


def _known_resources(written: Mapping[str, Any], path: FieldPath) -> Mapping[str, Any]:
    return check_known_fields(written.get("resources"), _FILTER_FIELDS, (*path, "resources"))


def _plain_selector(selector: Any, path: FieldPath) -> Any:
    """Return the selector unchanged. Raises NotConverted for wildcards, which only Kyverno allows."""
    if re.search(r"[*?]", str(get(selector, ("matchLabels",)) or "")):
        raise NotConverted(path, "has wildcards, and selectors of Kubernetes have none")
    return selector


def _resource_rules(resources: Mapping[str, Any], path: FieldPath, table: Table) -> Iterator[dict[str, Any]]:
    names = [*list_at(resources, ("names",)), *([resources["name"]] if resources.get("name") else [])]
    if any(re.search(r"[*?]", str(each)) for each in names):
        raise NotConverted((*path, "names"), "has wildcards, and resource names of Kubernetes have none")
    kinds = list_at(resources, ("kinds",))
    if not kinds:
        raise NotConverted((*path, "resources"), "names no kinds")
    plurals: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        group, version, resource = _group_version_resource(str(kind), (*path, "kinds"), table)
        added = [resource, "pods/ephemeralcontainers"] if resource == "pods" else [resource]
        plurals.setdefault((group, version), []).extend(added)
    for (group, version), plurals_of_group in plurals.items():
        yield {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": list(list_at(resources, ("operations",))) or list(_ALL_OPERATIONS),
            "resources": plurals_of_group,
            **({"resourceNames": names} if names else {}),
        }


def _group_version_resource(selector: str, path: FieldPath, table: Table) -> tuple[str, str, str]:
    """Return the resource for a selector `group/version/Kind/subresource`. Only the kind is required."""
    if selector == "*":
        return "*", "*", "*"
    parts = selector.split("/")
    group, version = "*", "*"
    if len(parts) >= 3 and not _VERSION.fullmatch(parts[0]) and _VERSION.fullmatch(parts[1]):
        group, version, *parts = parts
    elif len(parts) >= 2 and _VERSION.fullmatch(parts[0]):
        version, *parts = parts
    if not 1 <= len(parts) <= 2 or not re.fullmatch(r"[A-Z][A-Za-z0-9]*", parts[0]):
        raise NotConverted(path, f"kind `{selector}` is a pattern")
    resource_of_table = next(
        (row.resource for row in table.rows if row.kind == parts[0] and group in ("*", row.group)), ""
    )
    resource = resource_of_table or plural_of_kind(parts[0])
    return group, version, "/".join((resource, *parts[1:]))


def _in_namespaces(patterns: Sequence[str]) -> str:
    """Return an expression that compares the namespace, or a Namespace itself, with the patterns."""
    some = " || ".join(f"n.matches({string_literal(_glob_as_regex(str(each)))})" for each in patterns)
    return f"[{NAMESPACE_IN_CEL}].exists(n, {some})"


def _glob_as_regex(pattern: str) -> str:
    escaped = re.sub(r"[.+()^$|{}\[\]\\]", r"\\\g<0>", pattern)
    return f"^{escaped.replace('*', '.*').replace('?', '.')}$"


def _rules_for_controllers(policy: JSON, rules: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rules that Kyverno generates for pod controllers, each with the index of the rule about Pods."""
    if not _is_about_pods_or_controllers(rules):
        return
    annotation = get(policy, ("metadata", "annotations", _AUTOGEN_ANNOTATION))
    chosen = [*_CONTROLLERS, _CRON_JOB] if annotation in (None, "all") else str(annotation).split(",")
    others = [f"{_CONTROLLERS[each]}/{each}" for each in _CONTROLLERS if each in chosen]
    for index, rule in enumerate(rules):
        if not _has_pod(rule, "match") or (_kinds(rule, "exclude") and not _has_pod(rule, "exclude")):
            continue
        if others:
            yield index, _rule_for(rule, f"autogen-{rule.get('name', '')}", others, TEMPLATE, is_for_all=False)
        if _CRON_JOB in chosen:
            name, kinds = f"autogen-cronjob-{rule.get('name', '')}", [f"batch/v1/{_CRON_JOB}"]
            yield index, _rule_for(rule, name, kinds, TEMPLATE_OF_CRON_JOB, is_for_all=True)


def _is_about_pods_or_controllers(rules: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether Kyverno generates rules for pod controllers: no filter selects by name, labels or annotations, or
    mixes Pods with other kinds, and one filter names Pods or a pod controller.
    """
    filters = [each for rule in rules for block in ("match", "exclude") for each in _raw_filters(rule.get(block))]
    for each in filters:
        kinds = each.get("kinds") or ()
        if any(each.get(key) for key in ("name", "names", "selector", "annotations")):
            return False
        if len(kinds) > 1 and any(_is_pod(kind) for kind in kinds):
            return False
    pod_kinds = {"Pod", _CRON_JOB, *_CONTROLLERS}
    return any(kind in pod_kinds for each in filters for kind in each.get("kinds") or ())


def _raw_filters(block: JSON) -> list[Mapping[str, Any]]:
    entries = [*(get(block, ("any",)) or ()), *(get(block, ("all",)) or ())]
    filters = [get(each, ("resources",)) for each in (*entries, block)]
    return [each for each in filters if isinstance(each, dict)]


def _kinds(rule: Mapping[str, Any], block: str) -> list[str]:
    return [str(kind) for each in _raw_filters(rule.get(block)) for kind in each.get("kinds") or ()]


def _has_pod(rule: Mapping[str, Any], block: str) -> bool:
    return any(map(_is_pod, _kinds(rule, block)))


def _is_pod(kind: str) -> bool:
    return kind.rpartition("/")[2] == "Pod"


def _rule_for(
    rule: Mapping[str, Any], name: str, kinds: Sequence[str], template: Sequence[str], *, is_for_all: bool
) -> dict[str, Any]:
    """Return the rule for kinds of pod controllers, with every text rewritten for their pod template."""
    template_path = ".".join(template)

    def rewrite(text: str) -> str:
        for part in ("spec", "metadata"):
            text = re.sub(rf"(object|oldObject)\.{part}", rf"\1.{template_path}.{part}", text)
        return text

    converted = with_texts(rule, rewrite)
    blocks = {
        block: _with_kinds(converted[block], kinds, is_for_all=is_for_all)
        for block in ("match", "exclude")
        if converted.get(block)
    }
    return {**converted, **blocks, "name": name[:63]}


def _with_kinds(block: Mapping[str, Any], kinds: Sequence[str], *, is_for_all: bool) -> dict[str, Any]:
    converted = dict(block)
    for key in ("any", "all"):
        if converted.get(key):
            converted[key] = [_filter_with_kinds(each, kinds, is_for_all=is_for_all) for each in converted[key]]
    return _filter_with_kinds(converted, kinds, is_for_all=is_for_all) if "resources" in converted else converted


def _filter_with_kinds(each: Mapping[str, Any], kinds: Sequence[str], *, is_for_all: bool) -> dict[str, Any]:
    resources = each.get("resources")
    if not isinstance(resources, dict) or not (is_for_all or any(map(_is_pod, resources.get("kinds") or ()))):
        return dict(each)
    if not resources.get("kinds"):
        return dict(each)
    return {**each, "resources": {**resources, "kinds": list(kinds)}}
