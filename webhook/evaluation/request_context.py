"""Everything around one request that its policies may ask about, computed when it is needed, and once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.attributes import Attributes
from webhook.cluster.layered import LayeredCluster
from webhook.cluster.lookup import Cluster
from webhook.cluster.stored import stored
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.evaluation.contained_fault import FaultLog
from webhook.evaluation.params import RequestParams
from webhook.evaluation.request_namespace import RequestNamespace
from webhook.evaluation.request_objects import RequestObjects
from webhook.evaluation.request_variables import RequestVariables
from webhook.evaluation.review_options import DEFAULT, ReviewOptions
from webhook.evaluation.target import Target
from webhook.evaluation.undecoded import UndecodedTargets
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.policy.policy_set import PolicySet
from webhook.policy.static_params import Param

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


@dataclass(slots=True, eq=False)  # not frozen, which makes it twice as slow to make
class RequestContext:
    """One request, the policies and the cluster by then. Nobody changes one.

    `view` is the cluster as facts see it from the request's namespace, `undecoded` are the objects that policies are
    not asked about because they are not of their types, `faults` those of our own while policies were asked. `options`
    are what the caller wants to know besides the verdict.
    """

    attributes: Attributes
    policies: PolicySet
    cluster: Cluster
    deadline: Deadline
    view: View
    objects: RequestObjects
    namespace: RequestNamespace
    variables: RequestVariables
    params: RequestParams
    undecoded: UndecodedTargets
    faults: FaultLog
    options: ReviewOptions

    def subject(self, target: Target, param: Param) -> Subject:
        """A target as facts and checks see it, the same one for all policies that assume the same of the cluster.

        Raises:
            LookupFailed: the param cannot be read.

        """
        assumed = param.assumed
        if assumed is None:
            raise LookupFailed(param.refusal)
        for subject in target.subjects:
            if subject.assumptions is assumed:
                return subject
        podset = target.podset
        subject = Subject(
            object=target.object,
            old_object=target.attributes.old_object,
            attributes=target.attributes,
            cluster=self.view,
            table=self.policies.table,
            assumptions=assumed,
            pods=podset.pods if podset else 1,
            template_of=self.attributes.kind if podset else None,
            pod_set=podset.name if podset else "",
            is_patch=podset is not None and podset.is_patch,
            registry=self.policies.registry,
            mismatches=target.mismatches,
            omitted=frozenset(target.omitted),
            typed_objects=target.subjects[0].typed_objects if target.subjects else {},
        )
        target.subjects.append(subject)
        return subject


def request_context(
    policies: PolicySet,
    attributes: Attributes,
    cluster: Cluster,
    deadline: Deadline | None = None,
    authorizer: Authorizer | None = None,
    *,
    faults: FaultLog | None = None,
    options: ReviewOptions = DEFAULT,
) -> RequestContext:
    """What the policies may ask about a request before it is done; shipped parameters count where there are none."""
    held = cluster if options.is_stored else stored(cluster, attributes)
    lookups = LayeredCluster(held, policies.shipped_params) if policies.shipped_params else held
    until = deadline or Deadline()
    view = View(lookups, attributes.namespace, until)
    return RequestContext(
        attributes=attributes,
        policies=policies,
        cluster=lookups,
        deadline=until,
        view=view,
        objects=RequestObjects(attributes, policies.table, view),
        namespace=RequestNamespace(attributes, lookups),
        variables=RequestVariables(attributes, authorizer),
        params=RequestParams(attributes, lookups, policies.static_params.found_in(lookups), policies.configuration),
        undecoded=UndecodedTargets(),
        faults=faults or FaultLog(),
        options=options,
    )
