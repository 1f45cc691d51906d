"""Compiles bindings and reports every mistake in the API server's own text: kubernetes v1.36 as in compile.py."""

from __future__ import annotations

from webhook.decisions import ValidationAction
from webhook.manifests import validation as verification
from webhook.manifests.field_errors import FieldError
from webhook.manifests.models import BindingManifest, ValidatingBindingManifest
from webhook.paths import FieldPath
from webhook.policy.compiled import Binding
from webhook.policy.matching import compile_criteria
from webhook.policy.param_references import param_source

_SPEC: FieldPath = ("spec",)


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
