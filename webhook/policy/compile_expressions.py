"""Compiles the expressions of a policy: matchConditions, variables, validations, audit annotations and mutations.

Mistakes in and between expressions are added to the walk, in the order of compile.py.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from webhook.apimachinery.paths import FieldPath
from webhook.cel import Engine
from webhook.cel.library.declaration import Version
from webhook.cel.types import BOOL, DYN, NULL, STRING, list_of, object_type
from webhook.manifests import annotations as extensions
from webhook.manifests import validation as verification
from webhook.manifests.field_errors import duplicate_error, invalid_error, required_error, unsupported_error
from webhook.manifests.models import (
    AuditAnnotationManifest,
    MutatingPolicyManifest,
    MutatingSpec,
    MutationManifest,
    PolicyManifest,
    ValidatingPolicyManifest,
    ValidatingSpec,
    ValidationManifest,
)
from webhook.policy.compiled import (
    AuditAnnotation,
    Condition,
    Expression,
    MatchConditions,
    Mutation,
    PolicyBody,
    Validation,
)
from webhook.policy.expressions import PolicyCompilation
from webhook.rules.decisions import INVALID, REASON_CODES, DenialReason
from webhook.rules.declarations import LIST_OF_PROBLEMS, PROBLEMS

OBJECT, JSON_PATCHES = object_type("Object"), list_of(object_type("JSONPatch"))
_SPEC: FieldPath = ("spec",)
_UNSPECIFIED = "expression is not specified"


def compile_match_conditions(
    manifest: PolicyManifest, walk: PolicyCompilation, *, is_about_specs: bool
) -> MatchConditions:
    """Compile the matchConditions of a policy; their errors are added to the walk."""
    conditions = _compile_match_conditions(walk, manifest)
    programs = [each.expression.program for each in conditions]
    needs: frozenset[str] = frozenset().union(*(program.variable_names for program in programs if program is not None))
    return MatchConditions(
        conditions=conditions,
        needs=needs,
        spec_changes=_condition_for_spec_updates(walk.engine, walk.version) if is_about_specs else None,
    )


@lru_cache(maxsize=8)  # a handful of engines and versions; most policies have this condition
def _condition_for_spec_updates(engine: Engine, version: Version) -> Condition:
    """Return the condition that the annotation `updates: spec` adds. It reads only the request and its objects."""
    walk = PolicyCompilation(engine, version, has_params=False, facts=())
    name = extensions.SPEC_CHANGES["name"]
    return _compile_match_condition(
        walk, name, extensions.SPEC_CHANGES["expression"], ("metadata", "annotations", name)
    )


def compile_body(manifest: PolicyManifest, walk: PolicyCompilation) -> PolicyBody:
    """Compile the other expressions of a policy; their errors, and those of the fields around them, are added to the
    walk.
    """
    _compile_variables(walk, manifest)
    rules, audits, changes = _compile_rules_or_mutations(walk, manifest)
    return PolicyBody(
        variables=walk.variables,
        rules=rules,
        audits=audits,
        changes=changes,
        needs=walk.needs,
        messages=sum(rule.message_expression is not None for rule in rules),
    )


def only_reports_problems(spec: ValidatingSpec | MutatingSpec) -> bool:
    """Return whether the body of a policy is only `problems.size() == 0` with the messageExpression `problems`."""
    if isinstance(spec, MutatingSpec) or spec.variables or spec.audit_annotations or len(spec.validations) != 1:
        return False
    (rule,) = spec.validations
    return (rule.expression.strip(), rule.message_expression.strip()) == (f"{PROBLEMS}.size() == 0", PROBLEMS)


def _compile_match_conditions(walk: PolicyCompilation, manifest: PolicyManifest) -> tuple[Condition, ...]:
    """Compile the matchConditions, which cannot read `variables`."""
    path = (*_SPEC, "matchConditions")
    manifests = manifest.spec.match_conditions
    walk.errors += verification.condition_count_errors(manifests, path)
    conditions = []
    for index, condition in enumerate(manifests):
        where = (*path, index, "expression")
        conditions.append(_compile_match_condition(walk, condition.name, condition.expression, where))
        walk.errors += verification.condition_name_errors(manifests, path, index)
    return tuple(conditions)


def _compile_match_condition(walk: PolicyCompilation, name: str, source: str, where: FieldPath) -> Condition:
    expression = walk.compile_trimmed_expression(
        where, source, walk.environment_for_expression(variables=False), (BOOL,)
    )
    return Condition(name, expression)


def _compile_variables(walk: PolicyCompilation, manifest: PolicyManifest) -> None:
    """Compile the variables in order; each variable can read the variables before it."""
    if manifest.spec.variables or isinstance(manifest, MutatingPolicyManifest):
        walk.types = {}
    for index, variable in enumerate(manifest.spec.variables):
        path = (*_SPEC, "variables", index)
        walk.errors += verification.variable_name_errors(variable, path)
        expression = walk.compile_expression(
            (*path, "expression"), variable.expression, walk.environment_for_expression(), (), _UNSPECIFIED
        )
        walk.declare_variable(variable.name, expression, expression.program.result if expression.program else DYN)


_Parts: TypeAlias = tuple[tuple[Validation, ...], tuple[AuditAnnotation, ...], tuple[Mutation, ...]]


def _compile_rules_or_mutations(walk: PolicyCompilation, manifest: PolicyManifest) -> _Parts:
    if isinstance(manifest, MutatingPolicyManifest):
        return (), (), _compile_mutations(walk, manifest.spec)
    spec = manifest.spec
    if not spec.validations and not spec.audit_annotations:
        text = "validations or auditAnnotations must contain at least one item"
        walk.errors += [
            required_error((*_SPEC, "validations"), text),
            required_error((*_SPEC, "auditAnnotations"), text),
        ]
    rules = tuple(
        _compile_validation(walk, validation, (*_SPEC, "validations", i))
        for i, validation in enumerate(spec.validations)
    )
    return rules, _compile_audit_annotations(walk, manifest), ()


def _compile_validation(walk: PolicyCompilation, manifest: ValidationManifest, path: FieldPath) -> Validation:
    expression = walk.compile_expression(
        (*path, "expression"), manifest.expression, walk.environment_for_expression(), (BOOL,), _UNSPECIFIED
    )
    message = None
    where = (*path, "messageExpression")
    texts = (STRING, LIST_OF_PROBLEMS) if walk.rules else (STRING,)
    if manifest.message_expression.strip():
        message = walk.compile_expression(
            where, manifest.message_expression, walk.environment_for_expression(authorizer=False), texts
        )
    elif manifest.message_expression:
        walk.errors.append(invalid_error(where, manifest.message_expression, "must be non-empty if specified"))
    walk.errors += verification.validation_message_and_reason_errors(manifest, path)
    reason = manifest.reason or INVALID.reason
    denial = DenialReason(reason, REASON_CODES.get(reason, INVALID.code))
    lists = message is not None and message.program is not None and message.program.result == LIST_OF_PROBLEMS
    facts = walk.fact_fields_read_by(expression)
    return Validation(expression, manifest.message.strip(), message, denial, facts, lists_problems=lists)


def _compile_audit_annotations(
    walk: PolicyCompilation, manifest: ValidatingPolicyManifest
) -> tuple[AuditAnnotation, ...]:
    manifests = manifest.spec.audit_annotations
    path = (*_SPEC, "auditAnnotations")
    if len(manifests) > verification.MAX_AUDIT_ANNOTATIONS:
        shown = [{"Key": each.key, "ValueExpression": each.value_expression} for each in manifests]
        text = f"must not have more than {verification.MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        walk.errors.append(invalid_error(path, shown, text))
    rules: list[AuditAnnotation] = []
    for index, each in enumerate(manifests):
        walk.errors += verification.audit_annotation_key_errors(manifest.metadata.name, each.key, (*path, index))
        rules.append(AuditAnnotation(each.key, _compile_audit_value(walk, each, (*path, index, "valueExpression"))))
        if any(rule.key == each.key for rule in rules[:-1]):
            walk.errors.append(duplicate_error((*path, index, "key"), each.key))
    return tuple(rules)


def _compile_audit_value(walk: PolicyCompilation, manifest: AuditAnnotationManifest, path: FieldPath) -> Expression:
    if len(manifest.value_expression.strip().encode()) > verification.MAX_VALUE_EXPRESSION:
        text = f"must not exceed {verification.MAX_VALUE_EXPRESSION} bytes in length"
        walk.errors.append(required_error(path, text))
        return Expression(manifest.value_expression, error=text)
    text = "valueExpression is not specified"
    return walk.compile_trimmed_expression(
        path, manifest.value_expression, walk.environment_for_expression(), (STRING, NULL), text, shows_all=True
    )


def _compile_mutations(walk: PolicyCompilation, spec: MutatingSpec) -> tuple[Mutation, ...]:
    if not spec.mutations:
        walk.errors.append(required_error((*_SPEC, "mutations"), "mutations must contain at least one item"))
    changes = [_compile_mutation(walk, manifest, (*_SPEC, "mutations", i)) for i, manifest in enumerate(spec.mutations)]
    walk.errors += verification.reinvocation_policy_errors(spec, _SPEC)
    return tuple(change for change in changes if change)


def _compile_mutation(walk: PolicyCompilation, manifest: MutationManifest, path: FieldPath) -> Mutation | None:
    """Compile one mutation; return None if its patchType is unknown."""
    fields = {
        "JSONPatch": ("jsonPatch", manifest.json_patch),
        "ApplyConfiguration": ("applyConfiguration", manifest.apply_configuration),
    }
    if not manifest.patch_type:
        walk.errors.append(required_error((*path, "patchType")))
    elif manifest.patch_type not in fields:
        walk.errors.append(unsupported_error((*path, "patchType"), manifest.patch_type, sorted(fields)))
    if manifest.patch_type not in fields:
        return None
    name, own = fields.pop(manifest.patch_type)
    other_name, other = next(iter(fields.values()))
    change = None
    if own is None:
        walk.errors.append(required_error((*path, name), f"must be specified when patchType is {manifest.patch_type}"))
    else:
        place = walk.environment_for_expression(mutation=True)
        expected = JSON_PATCHES if manifest.patch_type == "JSONPatch" else OBJECT
        expression = walk.compile_trimmed_expression((*path, name, "expression"), own.expression, place, (expected,))
        change = Mutation("JSONPatch" if manifest.patch_type == "JSONPatch" else "ApplyConfiguration", expression)
    if other is not None:
        text = f"must not be specified when patchType is {manifest.patch_type}"
        walk.errors.append(invalid_error((*path, other_name), f"{{{other_name}}}", text))
    return change
