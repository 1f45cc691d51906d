"""Compiles policies and bindings: every expression to a program, every mistake to the API server's own text.

Walks a policy in the order in which the API server reports its errors, and does not stop at the first. A policy with
errors is also compiled, and keeps its errors. Knows neither requests nor files.

Source: kubernetes v1.36 pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import Operation
from webhook.apimachinery.paths import FieldPath
from webhook.cel import Engine
from webhook.cel.library.declaration import Version
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.manifests import annotations as extensions
from webhook.manifests import validation as verification
from webhook.manifests.field_errors import FieldError, invalid_error
from webhook.manifests.models import (
    BindingManifest,
    MatchResources,
    MutatingSpec,
    MutationManifest,
    PolicyManifest,
    ValidatingBindingManifest,
)
from webhook.manifests.portability import export_obstacles, matches_pods
from webhook.policy.compile_expressions import compile_body, compile_match_conditions, only_reports_problems
from webhook.policy.compiled import BOOKKEEPING, Binding, DeferredPart, Policy
from webhook.policy.expressions import PolicyCompilation
from webhook.policy.matching import Criteria, compile_criteria
from webhook.policy.static_params import gvk_of_param_kind, param_source
from webhook.rules.decisions import ValidationAction

_SPEC: FieldPath = ("spec",)
_EXPAND: FieldPath = ("metadata", "annotations", f"{extensions.PREFIX}expand")
_SELECTORS: Final = {"object_selector", "namespace_selector"}
"""Parts of a spec that read no field, although they may have the name of one."""


def compile_policy(
    manifest: PolicyManifest,
    engine: Engine,
    version: Version,
    file: str = "",
    *,
    registry: FactRegistry = SHIPPED,
    is_lazy: bool = False,
) -> tuple[Policy, tuple[FieldError, ...]]:
    """Compile a policy without its bindings, and return its errors in the API server's order and words.

    A lazy policy is compiled on first use. A mistake in an expression is then an error of this expression.
    """
    spec, meta = manifest.spec, manifest.metadata
    settings, complaints = extensions.read_annotations(meta.annotations, registry.fact_names, registry.check_groups)
    errors = [*verification.metadata_errors(meta), *complaints, *verification.policy_head_errors(spec, _SPEC)]
    if (settings.expands or settings.reads_resources) and not matches_pods(manifest):
        errors.append(invalid_error(_EXPAND, "pods", "needs a resource rule that names pods of the core group"))
    if settings.enters and isinstance(spec, MutatingSpec):
        errors.append(
            invalid_error(_EXPAND, "objects", "is for validating policies; objects inside others are not changed")
        )
    if settings.reads_patches and (isinstance(spec, MutatingSpec) or not settings.expands):
        errors.append(invalid_error(_EXPAND, "patches", "is for validating policies that expand to pods"))
    rules = registry.rule_catalogue_of_groups(settings.checks) if settings.checks else {}

    def walk(facts: Iterable[str] = settings.facts) -> PolicyCompilation:
        return PolicyCompilation(engine, version, spec.param_kind is not None, tuple(map(registry.fact, facts)), rules)

    def walk_of_conditions() -> PolicyCompilation:
        return walk() if spec.match_conditions else walk(())  # without a condition, no fact has to be imported

    is_about_specs = settings.is_about_specs
    policy_gate = DeferredPart(
        lambda: compile_match_conditions(manifest, walk_of_conditions(), is_about_specs=is_about_specs)
    )
    policy_body = DeferredPart(lambda: compile_body(manifest, walk()))
    if not is_lazy:
        first, second = walk_of_conditions(), walk()
        compiled_gate, compiled_body = (
            compile_match_conditions(manifest, first, is_about_specs=is_about_specs),
            compile_body(manifest, second),
        )
        policy_gate, policy_body = DeferredPart(lambda: compiled_gate), DeferredPart(lambda: compiled_body)
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
        gate=policy_gate,
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
        spares_stored=settings.spares_stored,
        skips_bookkeeping=settings.skips_bookkeeping,
        is_about_specs=is_about_specs,
        named_bookkeeping=frozenset(word for word in BOOKKEEPING if word in text),
        mentions_namespace="namespaceObject" in text,
        needs_schemas=isinstance(spec, MutatingSpec) and any(_is_configuration(each) for each in spec.mutations),
    )
    return policy, tuple(errors)


def _is_configuration(mutation: MutationManifest) -> bool:
    """Return whether a mutation merges an ApplyConfiguration, which needs the schema of a custom kind."""
    return mutation.patch_type == "ApplyConfiguration" and mutation.apply_configuration is not None


def _criteria_of_policy(manifest: MatchResources | None, *, names_delete: bool) -> Criteria:
    """Return what a policy matches; `names_delete`: the operation `*` does not include DELETE, as with `stored`."""
    criteria = compile_criteria(manifest)
    if not names_delete:
        return criteria
    others = frozenset(Operation) - {Operation.DELETE}
    rules = (structs.replace(each, operations=others) if each.operations is None else each for each in criteria.rules)
    return structs.replace(criteria, rules=tuple(rules))


def compile_binding(manifest: BindingManifest, file: str = "") -> tuple[Binding, tuple[FieldError, ...]]:
    """Compile a binding, and return its errors in the API server's order and words."""
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
