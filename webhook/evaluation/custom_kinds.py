"""Finds the CustomResourceDefinition of an object that a mutation changes, in the view of the cluster.

An ApplyConfiguration needs it. What a JSONPatch makes is completed by it, where the view has it; a live view holds
none for policies of JSON patches alone, since the API server completes and prunes the outcome itself. A kind that the
view has no definition of is an object of unknown fields.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import CRD, JSON
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import EvaluationTarget
from webhook.patch import structural
from webhook.patch.schema import is_builtin_group, schema_of_definition
from webhook.policy.compiled import Policy


def find_crd_of_target(target: EvaluationTarget, policy: Policy, context: RequestContext) -> JSON:
    """Return the definition of a target's kind; None for kinds of Kubernetes, and for kinds without a definition.

    None, too, of an object that the policy is asked about although its rules name Pods.

    Raises:
        LookupFailed: nobody can say, and the policy needs it.
    """
    resource = (target.attributes if target.podset else target.match).resource
    if is_builtin_group(resource.group) or target.criteria_attributes is not None:
        return None
    try:
        return context.cluster.get(CRD, "", f"{resource.resource}.{resource.group}")
    except LookupFailed:
        if policy.needs_schemas:
            raise
        return None


def without_unknown_fields(obj: JSON, crd: JSON, version: str, deadline: Deadline) -> JSON:
    """Return the object without fields that its definition does not declare."""
    declared = schema_of_definition(crd, version)
    return structural.without_unknown_fields(obj, declared.schema, deadline) if declared else obj
