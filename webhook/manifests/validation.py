"""Finds the mistakes for which an API server refuses a policy or binding.

models.py finds wrong fields, and compile.py wrong expressions. Each function checks one part of a manifest, and yields
the field errors of API servers in their order. compile.py calls the functions between the checks of expressions, as API
servers do. Source: kubernetes v1.36 pkg/apis/admissionregistration/validation/validation.go. In addition, claimgate
accepts the reason `BadRequest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from webhook.apimachinery import names
from webhook.apimachinery.paths import FieldPath
from webhook.cel.syntax.lexer import is_identifier
from webhook.manifests.field_errors import (
    FieldError,
    duplicate_error,
    forbidden_error,
    invalid_error,
    required_error,
    too_many_error,
    unsupported_error,
)
from webhook.manifests.models import (
    LabelSelector,
    LabelSelectorRequirement,
    MatchCondition,
    MatchResources,
    Metadata,
    MutatingSpec,
    NamedRule,
    ParamKind,
    ParamRef,
    PolicySpec,
    ValidatingBindingSpec,
    ValidationManifest,
    Variable,
)

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
OWN_REASONS = ("BadRequest",)
REINVOCATION_POLICIES = ("IfNeeded", "Never")
ACTIONS = ("Audit", "Deny", "Warn")
MAX_CONDITIONS = 64
MAX_AUDIT_ANNOTATIONS = 20
MAX_VALUE_EXPRESSION = 5 * 1024

Errors = Iterator[FieldError]


def metadata_errors(value: Metadata, path: FieldPath = ("metadata",)) -> Errors:
    """Check the object's name."""
    if not value.name:
        yield required_error((*path, "name"), "name or generateName is required")
    else:
        yield from _errors_of_name((*path, "name"), value.name, names.dns1123_subdomain_errors)
    if value.namespace:
        yield forbidden_error((*path, "namespace"), "not allowed on this type")


def _errors_of_name(path: FieldPath, value: str, check: Callable[[str], Sequence[str]]) -> Errors:
    for text in check(value):
        yield invalid_error(path, value, text)


def policy_head_errors(spec: PolicySpec, path: FieldPath) -> Errors:
    """Check failurePolicy, paramKind and matchConstraints of a policy."""
    if spec.failure_policy not in FAILURE_POLICIES:
        yield unsupported_error((*path, "failurePolicy"), spec.failure_policy, FAILURE_POLICIES)
    if spec.param_kind is not None:
        yield from param_kind_errors(spec.param_kind, (*path, "paramKind"))
    constraints_path = (*path, "matchConstraints")
    if spec.match_constraints is None:
        yield required_error(constraints_path)
        return
    yield from match_resources_errors(spec.match_constraints, constraints_path)
    if not spec.match_constraints.resource_rules:
        yield required_error((*constraints_path, "resourceRules"))
    if isinstance(spec, MutatingSpec):
        yield from mutating_operations_errors(spec.match_constraints, constraints_path)


def mutating_operations_errors(resources: MatchResources, path: FieldPath) -> Errors:
    """Refuse a mutation on DELETE, because there is no object to change."""
    for rule in resources.resource_rules:
        for operation in rule.operations:
            if operation not in MUTATING_OPERATIONS:
                yield unsupported_error((*path, "resourceRules", "operations"), operation, MUTATING_OPERATIONS)


def param_kind_errors(value: ParamKind, path: FieldPath) -> Errors:
    """Check apiVersion and kind of the parameters."""
    version_path = (*path, "apiVersion")
    group, _, version = value.api_version.rpartition("/")
    if not value.api_version:
        yield required_error(version_path)
    elif "/" in group:
        yield invalid_error(version_path, value.api_version, f"unexpected GroupVersion string: {value.api_version}")
    else:
        if group and (complaints := names.dns1123_subdomain_errors(group)):
            yield invalid_error(version_path, group, ",".join(complaints))
        if not version:
            yield invalid_error(version_path, value.api_version, "version must be specified")
        elif complaints := names.dns1035_label_errors(version):
            yield invalid_error(version_path, version, ",".join(complaints))
    if not value.kind:
        yield required_error((*path, "kind"))
    elif complaints := names.dns1035_label_errors(value.kind.lower()):
        text = f"may have mixed case, but should otherwise match: {','.join(complaints)}"
        yield invalid_error((*path, "kind"), value.kind, text)


def match_resources_errors(value: MatchResources, path: FieldPath) -> Errors:
    """Check matchConstraints or matchResources."""
    if value.match_policy not in MATCH_POLICIES:
        yield unsupported_error((*path, "matchPolicy"), value.match_policy, MATCH_POLICIES)
    yield from selector_errors(value.namespace_selector, (*path, "namespaceSelector"))
    yield from selector_errors(value.object_selector, (*path, "objectSelector"))
    for index, rule in enumerate(value.resource_rules):
        yield from named_rule_errors(rule, (*path, "resourceRules", index))
    for index, rule in enumerate(value.exclude_resource_rules):
        yield from named_rule_errors(rule, (*path, "excludeResourceRules", index))


def selector_errors(labels: LabelSelector | None, path: FieldPath) -> Errors:
    """Check a label selector."""
    if labels is None:
        return
    for key, value in sorted(labels.match_labels.items()):
        yield from _errors_of_name((*path, "matchLabels"), key, names.qualified_name_errors)
        yield from _errors_of_name((*path, "matchLabels"), value, names.label_value_errors)
    for index, requirement in enumerate(labels.match_expressions):
        yield from _errors_of_requirement(requirement, (*path, "matchExpressions", index))


def _errors_of_requirement(requirement: LabelSelectorRequirement, path: FieldPath) -> Errors:
    if requirement.operator in ("In", "NotIn"):
        if not requirement.values:
            yield required_error((*path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif requirement.operator in ("Exists", "DoesNotExist"):
        if requirement.values:
            yield forbidden_error(
                (*path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    else:
        yield invalid_error((*path, "operator"), requirement.operator, "not a valid selector operator")
    yield from _errors_of_name((*path, "key"), requirement.key, names.qualified_name_errors)
    for index, value in enumerate(requirement.values):
        yield from _errors_of_name((*path, "values", index), value, names.label_value_errors)


def named_rule_errors(rule: NamedRule, path: FieldPath) -> Errors:
    """Check one rule: names, operations, groups, versions, resources, scope."""
    for index, name in enumerate(rule.resource_names):
        yield from _errors_of_name((*path, "resourceNames", index), name, names.path_segment_errors)
        if name in rule.resource_names[:index]:
            yield duplicate_error((*path, "resourceNames", index), name)
    yield from _errors_of_wildcard(rule.operations, (*path, "operations"), "operations")
    for index, operation in enumerate(rule.operations):
        if operation not in OPERATIONS:
            yield unsupported_error((*path, "operations", index), operation, OPERATIONS)
    yield from _errors_of_wildcard(rule.api_groups, (*path, "apiGroups"), "API groups")
    yield from _errors_of_wildcard(rule.api_versions, (*path, "apiVersions"), "API versions")
    for index, version in enumerate(rule.api_versions):
        if not version:
            yield required_error((*path, "apiVersions", index))
    yield from _errors_of_resources(rule.resources, (*path, "resources"))
    if rule.scope is not None and rule.scope not in SCOPES:
        yield unsupported_error((*path, "scope"), rule.scope, SCOPES)


def _errors_of_wildcard(values: list[str], path: FieldPath, plural: str) -> Errors:
    if not values:
        yield required_error(path)
    if len(values) > 1 and "*" in values:
        yield invalid_error(path, values, f"if '*' is present, must not specify other {plural}")


def _errors_of_resources(resources: list[str], path: FieldPath) -> Errors:
    if not resources:
        yield required_error(path)
    whole: set[str] = set()
    everywhere: set[str] = set()
    for index, resource in enumerate(resources):
        parent, slash, sub = resource.partition("/")
        if not resource:
            yield required_error((*path, index))
        if not slash:
            continue
        if parent in whole:
            yield invalid_error((*path, index), resource, f"if '{parent}/*' is present, must not specify {resource}")
        if sub in everywhere:
            yield invalid_error((*path, index), resource, f"if '*/{sub}' is present, must not specify {resource}")
        whole.update([parent] if sub == "*" else [])
        everywhere.update([sub] if parent == "*" else [])
    if len(resources) > 1 and "*/*" in resources:
        yield invalid_error(path, resources, "if '*/*' is present, must not specify other resources")
    plain = [resource for resource in resources if resource and "/" not in resource]
    if "*" in resources and plain and plain[-1] != "*":
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid_error(path, resources, text)


def condition_name_errors(value: Sequence[MatchCondition], path: FieldPath, index: int) -> Errors:
    """Check the name of the condition at an index."""
    name = value[index].name
    if not name:
        yield required_error((*path, index, "name"))
    else:
        yield from _errors_of_name((*path, index, "name"), name, names.qualified_name_errors)
    if name and any(name == earlier.name for earlier in value[:index]):
        yield duplicate_error((*path, index, "name"), name)


def condition_count_errors(value: Sequence[MatchCondition], path: FieldPath) -> Errors:
    """Refuse more than 64 conditions."""
    if len(value) > MAX_CONDITIONS:
        yield too_many_error(path, len(value), MAX_CONDITIONS)


def variable_name_errors(value: Variable, path: FieldPath) -> Errors:
    """Check the name of a variable."""
    if not value.name.strip():
        yield required_error((*path, "name"), "name is not specified")
    elif not is_identifier(value.name):
        yield invalid_error((*path, "name"), value.name, "must be a valid CEL identifier")


def validation_message_and_reason_errors(value: ValidationManifest, path: FieldPath) -> Errors:
    """Check message and reason of a validation."""
    message = value.message.strip()
    if value.message and not message:
        yield invalid_error((*path, "message"), value.message, "must be non-empty if specified")
    elif "\n" in message or "\r" in message:
        yield invalid_error((*path, "message"), value.message, "must not contain line breaks")
    if value.reason is not None and value.reason not in (*REASONS, *OWN_REASONS):
        yield unsupported_error((*path, "reason"), value.reason, REASONS)


def reinvocation_policy_errors(spec: MutatingSpec, path: FieldPath) -> Errors:
    """Check reinvocationPolicy of a mutating policy."""
    if not spec.reinvocation_policy:
        yield required_error((*path, "reinvocationPolicy"))
    elif spec.reinvocation_policy not in REINVOCATION_POLICIES:
        yield unsupported_error((*path, "reinvocationPolicy"), spec.reinvocation_policy, REINVOCATION_POLICIES)


def audit_annotation_key_errors(policy: str, key: str, path: FieldPath) -> Errors:
    """Check the key of an audit annotation: `<policy>/<key>` must be a qualified name."""
    if not policy:
        yield invalid_error((*path, "key"), key, "requires metadata.name be non-empty")
    else:
        yield from _errors_of_name((*path, "key"), f"{policy}/{key}", names.qualified_name_errors)


def param_ref_errors(value: ParamRef | None, path: FieldPath, *, needs_action: bool = True) -> Errors:
    """Check paramRef of a binding. v1alpha1 sets parameterNotFoundAction."""
    if value is None:
        return
    if value.name:
        yield from _errors_of_name((*path, "name"), value.name, names.path_segment_errors)
        if value.selector is not None:
            yield forbidden_error((*path, "name"), "name and selector are mutually exclusive")
    if value.selector is not None:
        yield from selector_errors(value.selector, (*path, "selector"))
        if value.name:
            yield forbidden_error((*path, "selector"), "name and selector are mutually exclusive")
    if not value.name and value.selector is None:
        yield required_error(path, "one of name or selector must be specified")
    if not value.parameter_not_found_action:
        if needs_action:
            yield required_error((*path, "parameterNotFoundAction"))
    elif value.parameter_not_found_action not in ("Allow", "Deny"):
        action_path = (*path, "parameterNotFoundAction")
        yield unsupported_error(action_path, value.parameter_not_found_action, ("Deny", "Allow"))


def policy_name_errors(name: str, path: FieldPath) -> Errors:
    """Check policyName of a binding."""
    if not name:
        yield required_error((*path, "policyName"))
    else:
        yield from _errors_of_name((*path, "policyName"), name, names.dns1123_subdomain_errors)


def validation_actions_errors(spec: ValidatingBindingSpec, path: FieldPath) -> Errors:
    """Check validationActions of a binding."""
    value = spec.validation_actions
    for index, action in enumerate(value):
        if action not in ACTIONS:
            yield unsupported_error((*path, index), action, ACTIONS)
        if action in value[:index]:
            yield duplicate_error((*path, index), action)
    if "Deny" in value and "Warn" in value:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response"
            " and headers serves no purpose)"
        )
        yield invalid_error(path, value, text)
    if not value:
        yield required_error(path, "at least one validation action is required")
