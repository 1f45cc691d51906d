"""Everything that policies may ask about one request; each part is computed once, when it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.apimachinery.attributes import Attributes
from webhook.cluster.lookup import Cluster
from webhook.cluster.stored import view_before_request
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.evaluation.params import RequestParams
from webhook.evaluation.request_namespace import RequestNamespace
from webhook.evaluation.request_objects import RequestObjects
from webhook.evaluation.request_variables import RequestVariables
from webhook.evaluation.review_options import DEFAULT, ReviewOptions
from webhook.evaluation.target import EvaluationTarget
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.static_params import Param
from webhook.rules.decisions import EvaluationFault

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


@dataclass(slots=True, eq=False)  # not frozen, which makes it twice as slow to make
class RequestContext:
    """One request with the policies and the cluster at that time. Nobody changes it.

    `view` is the cluster as facts see it from the request's namespace, `undecoded` are the objects that are not of
    their types, with each policy that may be about them, `faults` those of our own while policies were asked. `options`
    are what the caller wants to know besides the verdict.
    """

    attributes: Attributes
    policies: PolicySet
    cluster: Cluster
    deadline: Deadline
    view: ClusterView
    objects: RequestObjects
    namespace: RequestNamespace
    variables: RequestVariables
    params: RequestParams
    undecoded: list[tuple[EvaluationTarget, Policy]]
    faults: list[EvaluationFault]
    options: ReviewOptions

    def subject(self, target: EvaluationTarget, param: Param) -> Subject:
        """Return a target as facts and checks see it; policies with the same assumptions about the cluster share it.

        Raises:
            LookupFailed: the param cannot be read.
        """
        assumed = param.assumed
        if assumed is None:
            raise LookupFailed(param.refusal)
        known = target.subjects.get(id(assumed))
        if known is not None:
            return known
        podset = target.podset
        subject = target.subjects[id(assumed)] = Subject(
            object=target.object,
            old_object=target.attributes.old_object,
            attributes=target.attributes,
            cluster=self.view,
            table=self.policies.table,
            assumptions=assumed,
            pods=podset.pods if podset else 1,
            template_of=self.attributes.kind if podset else None,
            pod_set=podset.name if podset else "",
            is_decoded=podset is None and bool(self.objects.typed_own),
            is_patch=podset is not None and podset.is_patch,
            registry=self.policies.registry,
            mismatches=target.mismatches,
            omitted=frozenset(target.omitted),
            typed_objects=target.typed_objects,
        )
        return subject


def request_context(
    policies: PolicySet,
    attributes: Attributes,
    cluster: Cluster,
    deadline: Deadline | None = None,
    authorizer: Authorizer | None = None,
    *,
    faults: list[EvaluationFault] | None = None,
    options: ReviewOptions = DEFAULT,
) -> RequestContext:
    """Return the context of a request, with the cluster as it is before the request."""
    before = cluster if options.is_stored else view_before_request(cluster, attributes)
    until = deadline or Deadline()
    view = ClusterView(before, attributes.namespace, until, sees_all_namespaces=options.sees_all_namespaces)
    return RequestContext(
        attributes=attributes,
        policies=policies,
        cluster=before,
        deadline=until,
        view=view,
        objects=RequestObjects(attributes, policies.table, view),
        namespace=RequestNamespace(attributes, before),
        variables=RequestVariables(attributes, authorizer),
        params=RequestParams(attributes, before, policies),
        undecoded=[],
        faults=[] if faults is None else faults,
        options=options,
    )
