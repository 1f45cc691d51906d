"""The CustomResourceDefinition of what a mutation is laid over, where the view of the cluster has it.

It is asked for by policies with an ApplyConfiguration alone: what a JSONPatch makes, the API server completes and
prunes itself. A kind that the view has no definition of is an object of unknown fields.
"""

from __future__ import annotations

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.patch import structural
from webhook.patch.schema import definition, is_builtin_group
from webhook.policy.interests import CRD


def definition_of(target: Target, context: RequestContext) -> JSON:
    """The definition of a target's kind; None of a kind of Kubernetes, and of one that nobody defines.

    Raises:
        LookupFailed: nobody can say.

    """
    resource = (target.attributes if target.podset else target.match).resource
    if is_builtin_group(resource.group):
        return None
    return context.cluster.get(CRD, "", f"{resource.resource}.{resource.group}")


def pruned(obj: JSON, crd: JSON, version: str, deadline: Deadline) -> JSON:
    """An object without the fields that its definition does not know."""
    declared = definition(crd, version)
    return structural.pruned(obj, declared.schema, deadline) if declared else obj
