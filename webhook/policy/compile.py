"""Compiles policies and bindings: expressions become programs, and errors have the messages of API servers.

The errors of a policy are reported in the order of API servers, and all errors are found. A policy with errors is also
compiled. An expression with an error keeps its error.

Source: kubernetes v1.36 pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import structs

from webhook.apimachinery.attributes import Operation
from webhook.apimachinery.paths import FieldPath
from webhook.cel import Engine
from webhook.cel.library.declaration import Version
from webhook.cel.types import BOOL, DYN, NULL, STRING, list_of, object_type
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.manifests import annotations as extensions
from webhook.manifests import validation as verification
from webhook.manifests.annotations import export_obstacles, matches_pods
from webhook.manifests.field_errors import FieldError, duplicate_error, invalid_error, required_error, unsupported_error
from webhook.manifests.models import (
    AuditAnnotationManifest,
    BindingManifest,
    MatchResources,
    MutatingPolicyManifest,
    MutatingSpec,
    MutationManifest,
    PolicyManifest,
    ValidatingBindingManifest,
    ValidatingPolicyManifest,
    ValidatingSpec,
    ValidationManifest,
)
from webhook.policy.compiled import (
    BOOKKEEPING,
    AuditAnnotation,
    Binding,
    Condition,
    DeferredPart,
    Expression,
    MatchConditions,
    Mutation,
    Policy,
    PolicyBody,
    Validation,
)
from webhook.policy.expressions import PolicyCompilation
from webhook.policy.matching import Criteria, compile_criteria
from webhook.policy.static_params import gvk_of_param_kind, param_source
from webhook.rules.decisions import INVALID, REASON_CODES, DenialReason, ValidationAction
from webhook.rules.declarations import LIST_OF_PROBLEMS, PROBLEMS

OBJECT, JSON_PATCHES = object_type("Object"), list_of(object_type("JSONPatch"))
_UNSPECIFIED = "expression is not specified"
_SPEC: FieldPath = ("spec",)
_EXPAND: FieldPath = ("metadata", "annotations", f"{extensions.PREFIX}expand")
_SELECTORS: Final = {"object_selector", "namespace_selector"}
"""Parts of a spec that are not searched for names such as `namespaceObject`."""


def compile_policy(
    manifest: PolicyManifest,
    engine: Engine,
    version: Version,
    file: str = "",
    *,
    registry: FactRegistry = SHIPPED,
    is_lazy: bool = False,
) -> tuple[Policy, tuple[FieldError, ...]]:
    """Compile a policy without its bindings. Also return the errors, in the order and with the messages of API servers.

    With `is_lazy`, expressions are compiled on first use, and an expression with a mistake keeps its error.
    """
    spec, meta = manifest.spec, manifest.metadata
    settings, complaints = extensions.read_annotations(meta.annotations, registry.fact_names, registry.check_groups)
    errors = [*verification.metadata_errors(meta), *complaints, *verification.policy_head_errors(spec, _SPEC)]
    if (settings.expands or settings.reads_resources) and not matches_pods(manifest):
        errors.append(invalid_error(_EXPAND, "pods", "needs a resource rule that names pods of the core group"))
    if settings.enters and isinstance(spec, MutatingSpec):
        errors.append(
            invalid_error(
                _EXPAND, "objects", "is for validating policies; objects inside other objects are not changed"
            )
        )
    if settings.reads_patches and (isinstance(spec, MutatingSpec) or not settings.expands):
        errors.append(invalid_error(_EXPAND, "patches", "is for validating policies that expand to pods"))
    rules = registry.rule_catalogue_of_groups(settings.checks) if settings.checks else {}

    def walk(facts: Iterable[str] = settings.facts) -> PolicyCompilation:
        return PolicyCompilation(engine, version, spec.param_kind is not None, tuple(map(registry.fact, facts)), rules)

    def walk_of_conditions() -> PolicyCompilation:
        return walk() if spec.match_conditions else walk(())  # without conditions, no facts are imported

    is_about_specs = settings.is_about_specs
    match_conditions = DeferredPart(
        lambda: compile_match_conditions(manifest, walk_of_conditions(), is_about_specs=is_about_specs)
    )
    policy_body = DeferredPart(lambda: compile_body(manifest, walk()))
    if not is_lazy:
        first, second = walk_of_conditions(), walk()
        compiled_conditions, compiled_body = (
            compile_match_conditions(manifest, first, is_about_specs=is_about_specs),
            compile_body(manifest, second),
        )
        match_conditions, policy_body = DeferredPart(lambda: compiled_conditions), DeferredPart(lambda: compiled_body)
        errors += [*first.errors, *second.errors]
    is_mutating = isinstance(spec, MutatingSpec)
    text = spec.model_dump_json(exclude={"validations": {"__all__": {"message"}}, "match_constraints": _SELECTORS})
    policy = Policy(
        kind="mutating" if is_mutating else "validating",
        name=meta.name,
        file=file,
        annotations=meta.annotations,
        is_fail=spec.failure_policy != "Ignore",
        param_kind=gvk_of_param_kind(spec.param_kind),
        criteria=_criteria_of_policy(spec.match_constraints, names_delete=settings.skips_bookkeeping),
        match_conditions=match_conditions,
        body=policy_body,
        rule_count=0 if isinstance(spec, MutatingSpec) else len(spec.validations),
        reports_problems=bool(settings.checks) and only_reports_problems(spec),
        reinvokes=isinstance(spec, MutatingSpec) and spec.reinvocation_policy == "IfNeeded",
        facts=settings.facts,
        checks=settings.checks,
        catalogue=rules,
        missing=settings.missing,
        expands=settings.expands,
        enters=settings.enters,
        reads_patches=settings.reads_patches,
        reads_resources=settings.reads_resources,
        judges_types=registry.has_checks_of_field_types(settings.checks),
        phase="mutate" if is_mutating else settings.phase,
        is_registered=settings.is_registered,
        concerns=settings.concerns,
        any_pod=settings.any_pod,
        severity=settings.severity,
        category=settings.category,
        docs=settings.docs,
        obstacles=export_obstacles(manifest, settings),
        warns_about_stored=settings.warns_about_stored,
        skips_bookkeeping=settings.skips_bookkeeping,
        is_about_specs=is_about_specs,
        named_bookkeeping=frozenset(word for word in BOOKKEEPING if word in text),
        mentions_namespace="namespaceObject" in text,
        needs_schemas=isinstance(spec, MutatingSpec) and any(_is_configuration(each) for each in spec.mutations),
    )
    return policy, tuple(errors)


def _is_configuration(mutation: MutationManifest) -> bool:
    """Return whether a mutation is an ApplyConfiguration, which needs the schema of a custom kind."""
    return mutation.patch_type == "ApplyConfiguration" and mutation.apply_configuration is not None


def _criteria_of_policy(manifest: MatchResources | None, *, names_delete: bool) -> Criteria:
    """Return the criteria of a policy. With `names_delete`, the operation `*` does not include DELETE, as the
    annotation `stored` requires.
    """
    criteria = compile_criteria(manifest)
    if not names_delete:
        return criteria
    others = frozenset(Operation) - {Operation.DELETE}
    rules = (structs.replace(each, operations=others) if each.operations is None else each for each in criteria.rules)
    return structs.replace(criteria, rules=tuple(rules))


def compile_binding(manifest: BindingManifest, file: str = "") -> tuple[Binding, tuple[FieldError, ...]]:
    """Compile a binding. Also return the errors, in the order and with the messages of API servers."""
    spec = manifest.spec
    errors = [
        *verification.metadata_errors(manifest.metadata),
        *verification.policy_name_errors(spec.policy_name, _SPEC),
    ]
    is_old = manifest.api_version.endswith("/v1alpha1")
    errors += verification.param_ref_errors(spec.param_ref, (*_SPEC, "paramRef"), needs_action=not is_old)
    path = (*_SPEC, "matchResources")
    if spec.match_resources is not None:
        errors += verification.match_resources_errors(spec.match_resources, path)
    actions: list[str] = []
    if isinstance(manifest, ValidatingBindingManifest):
        actions = manifest.spec.validation_actions
        errors += verification.validation_actions_errors(manifest.spec, (*_SPEC, "validationActions"))
    elif spec.match_resources is not None:
        errors += verification.mutating_operations_errors(spec.match_resources, path)
    binding = Binding(
        name=manifest.metadata.name,
        policy=spec.policy_name,
        criteria=compile_criteria(spec.match_resources) if spec.match_resources is not None else None,
        param_source=param_source(spec.param_ref),
        actions=tuple(ValidationAction(action) for action in actions if action in verification.ACTIONS),
        file=file,
    )
    return binding, tuple(errors)


def compile_match_conditions(
    manifest: PolicyManifest, walk: PolicyCompilation, *, is_about_specs: bool
) -> MatchConditions:
    """Compile the matchConditions of a policy, and add their errors to the walk."""
    conditions = _compile_match_conditions(walk, manifest)
    programs = [each.expression.program for each in conditions]
    needs: frozenset[str] = frozenset().union(*(program.variable_names for program in programs if program is not None))
    return MatchConditions(
        conditions=conditions,
        needs=needs,
        spec_changes=_condition_for_spec_updates(walk.engine, walk.version) if is_about_specs else None,
    )


@lru_cache(maxsize=8)  # most policies have this condition; there are few engines and versions
def _condition_for_spec_updates(engine: Engine, version: Version) -> Condition:
    """Return the condition of the annotation `updates: spec`, which reads only the request and its objects."""
    walk = PolicyCompilation(engine, version, has_params=False, facts=())
    name = extensions.SPEC_CHANGES["name"]
    return _compile_match_condition(
        walk, name, extensions.SPEC_CHANGES["expression"], ("metadata", "annotations", name)
    )


def compile_body(manifest: PolicyManifest, walk: PolicyCompilation) -> PolicyBody:
    """Compile the expressions of a policy except matchConditions. Add errors of expressions and of other fields to the
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
    """Return whether the only validation of a policy is `problems.size() == 0` with the messageExpression
    `problems`.
    """
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
        expression_path = (*path, index, "expression")
        conditions.append(_compile_match_condition(walk, condition.name, condition.expression, expression_path))
        walk.errors += verification.condition_name_errors(manifests, path, index)
    return tuple(conditions)


def _compile_match_condition(walk: PolicyCompilation, name: str, source: str, expression_path: FieldPath) -> Condition:
    expression = walk.compile_trimmed_expression(
        expression_path, source, walk.environment_for_expression(variables=False), (BOOL,)
    )
    return Condition(name, expression)


def _compile_variables(walk: PolicyCompilation, manifest: PolicyManifest) -> None:
    """Compile the variables in order. A variable can read the variables before it."""
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
    message_path = (*path, "messageExpression")
    texts = (STRING, LIST_OF_PROBLEMS) if walk.rules else (STRING,)
    if manifest.message_expression.strip():
        message = walk.compile_expression(
            message_path, manifest.message_expression, walk.environment_for_expression(authorizer=False), texts
        )
    elif manifest.message_expression:
        walk.errors.append(invalid_error(message_path, manifest.message_expression, "must be non-empty if specified"))
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
    """Compile one mutation; None if its patchType is unknown, or the field of the patchType is absent."""
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
