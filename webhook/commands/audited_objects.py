"""Reviews the objects that an audit reads as if a user submitted them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.admission.phases import LocalAnswerer, PhaseName, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import POD, Attributes, GroupVersionKind, Phase
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.evaluation.review_options import ReviewOptions
from webhook.facts.pods.unread_pods import unread_parts
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision
from webhook.workloads.table import Table

Reviewed: TypeAlias = Literal["create", "stored"]
_PHASES: Final[dict[Reviewed, PhaseName]] = {"create": "auto", "stored": "validate"}
"""The phases of a review: created objects pass mutation first, stored ones did so when they were written, or never."""


class ObjectAudit(Struct, frozen=True):
    """The policies, how objects are reviewed, and what is reported in addition to the verdict."""

    policies: PolicySet
    reviewed: Reviewed
    details: ReviewOptions

    def run_policies_on_object(self, attributes: Attributes, cluster: Cluster) -> PhasesOutcome:
        """Return the result of the policies for an object."""
        if self.reviewed == "stored":
            attributes = without_scheduled_node(attributes)
        door = LocalAnswerer(policies=self.policies, cluster=cluster, options=self.details)
        return run_phases(attributes, _PHASES[self.reviewed], door)


def decisions_of(outcome: PhasesOutcome) -> Sequence[tuple[Phase, Decision]]:
    """Return all decisions on an object; () if no policy applies."""
    return (*outcome.decisions, *outcome.further)


def has_unread_pods(attributes: Attributes, table: Table) -> bool:
    """Return whether an object creates pods that are not read: without findings it is still not known to be good."""
    kind = attributes.kind
    return table.row(kind.group, kind.kind) is not None and bool(unread_parts(attributes.object, table, Deadline()))


def without_scheduled_node(attributes: Attributes) -> Attributes:
    """Return a stored Pod without the node that the scheduler wrote, because rules about spec.nodeName are for
    users.
    """
    spec = attributes.object.get("spec") if isinstance(attributes.object, dict) else None
    if attributes.kind != POD or not isinstance(spec, dict) or "nodeName" not in spec:
        return attributes
    kept = {name: value for name, value in spec.items() if name != "nodeName"}
    return replace(attributes, object={**attributes.object, "spec": kept})


def qualified_kind(kind: GroupVersionKind) -> str:
    """Return the kind with its API group as kubectl writes it: `Pod`, `Workflow.argoproj.io`."""
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind
