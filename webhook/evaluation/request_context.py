"""The values that policies may read for one request. Each value is computed once, when it is first read.

Shapes of the variables: k8s.io/apiserver v0.36 pkg/admission/plugin/cel/condition.go (CreateAdmissionRequest,
CreateNamespaceObject). Absent optional fields have no keys, as after the API server's conversion to unstructured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import (
    JSON,
    NAMESPACE,
    Attributes,
    GroupVersionKind,
    GroupVersionResource,
    UserInfo,
    is_user_known,
)
from webhook.cluster import Cluster
from webhook.cluster.layered import AssumedNamespace, view_before_request
from webhook.deadline import Deadline
from webhook.errors import BindingError, LookupFailed, UnknownLabels
from webhook.evaluation.cost_budget import CostBudget
from webhook.evaluation.merged_pods import PartialObject
from webhook.evaluation.params import RequestParams
from webhook.evaluation.request_objects import EvaluationTarget, RequestObjects
from webhook.evaluation.review_options import DEFAULT, ReviewOptions
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.manifests.label_selectors import Labels, Selector, labels_of, string_labels_of
from webhook.policy.compiled import Policy
from webhook.policy.declarations import NAMESPACE_METADATA, REQUEST_RESOURCE
from webhook.policy.matching import Match, NamespaceLabels, matches_namespace
from webhook.policy.policy_set import PolicySet
from webhook.policy.static_params import Param
from webhook.rules.decisions import EvaluationFault

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

_NOT_LOOKED_UP: Final = object()


class RequestContext(Struct, eq=False):
    """One request, with the policies and the view of the cluster for its evaluation. Treat it as immutable.

    `view` is the view of the cluster for facts, from the request's namespace. `undecoded` has the objects with values
    of wrong types, each with a policy that may concern it. `faults` has our own bugs during the evaluation of
    policies. `options`: what the caller wants in addition to the verdict.
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

    def of_other_request(self, attributes: Attributes, *, may_ask: bool = True) -> RequestContext:
        """Return the context of another request with the same policies and cluster.

        The trace does not record the other request, because the trace explains the verdict. `may_ask`: whether policies
        may use the authorizer.
        """
        without_trace, authorizer = replace(self.options, trace=None), self.variables.authority if may_ask else None
        return request_context(
            self.policies,
            attributes,
            self.cluster,
            self.deadline,
            authorizer,
            faults=self.faults,
            options=without_trace,
        )

    def cost_budget(self, limit: int) -> CostBudget:
        """Return a cost budget for expressions. If there is a trace, the trace counts the cost."""
        budget = CostBudget(limit, self.deadline)
        if self.options.trace is not None:
            self.options.trace.count_cost_of_budget(budget)
        return budget

    def subject(self, target: EvaluationTarget, param: Param) -> Subject:
        """Return a target in the form for facts and checks. Policies with the same assumptions about the cluster share
        the subject.

        Raises:
            LookupFailed: the param cannot be read.
        """
        assumed = param.assumed
        if assumed is None:
            raise LookupFailed(param.refusal)
        existing = target.subjects.get(id(assumed))
        if existing is not None:
            return existing
        podset = target.podset
        subject = target.subjects[id(assumed)] = Subject(
            object=target.object,
            old_object=target.attributes.old_object,
            written=target.written,
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
    """Return the context of a request, with the view of the cluster before the request."""
    before = cluster if options.is_stored else view_before_request(cluster, attributes)
    until = deadline or Deadline()
    view = ClusterView(
        before,
        attributes.namespace,
        until,
        sees_all_namespaces=options.sees_all_namespaces,
        own_namespace=policies.own_namespace,
    )
    return RequestContext(
        attributes=attributes,
        policies=policies,
        cluster=before,
        deadline=until,
        view=view,
        objects=RequestObjects(attributes, policies.table, view),
        namespace=RequestNamespace(attributes, before),
        variables=RequestVariables(attributes, authorizer),
        params=RequestParams(attributes, before, policies, until),
        undecoded=[],
        faults=[] if faults is None else faults,
        options=options,
    )


class RequestNamespace:
    """The namespace of one request."""

    __slots__ = ("_attributes", "_cluster", "_labels", "_namespace", "_selected")

    def __init__(self, attributes: Attributes, cluster: Cluster) -> None:
        self._attributes = attributes
        self._cluster = cluster
        self._selected: dict[tuple[Selector, bool], bool] = {}
        self._namespace: JSON = _NOT_LOOKED_UP
        self._labels: Labels | None = None

    def labels(self) -> Labels | None:
        """Return the labels of the namespace; None if the namespace does not exist.

        Raises:
            UnknownLabels: no file has the namespace.
            MistypedLabels: a file has the namespace with labels that are not strings.
            LookupFailed: the namespace is not known.
        """
        if self._labels is None:
            namespace = self._look_up_namespace()
            self._require_known_namespace(namespace)
            self._labels = None if namespace is None else string_labels_of(namespace)
        return self._labels

    def assumed_labels(self) -> Labels | None:
        """Return the labels of the namespace; no labels if no file has the namespace. Policies with checks use these
        labels. For example, checks read the label that enables a mesh.

        Raises:
            LookupFailed: the namespace is not known.
        """
        namespace = self._look_up_namespace()
        return labels_of(namespace) if isinstance(namespace, AssumedNamespace) else self.labels()

    def labels_for(self, policy: Policy) -> NamespaceLabels:
        """Return the function that returns the labels for a policy."""
        return self.assumed_labels if policy.checks else self.labels

    def is_selected_by(self, selector: Selector, policy: Policy) -> bool:
        """Return whether a namespaceSelector of a policy or binding selects the namespace.

        Raises:
            BindingError: the namespace does not exist.
            LookupFailed: the labels of the namespace are unknown.
        """
        if not selector.requirements:
            return True
        attributes, labels = self._attributes, self._labels
        if labels is not None and attributes.namespace and attributes.resource.resource != "namespaces":
            return selector.matches(labels)  # the usual case: another policy has already looked up the labels
        key = selector, bool(policy.checks)  # policies with checks get other labels (`labels_for`)
        selected = self._selected.get(key)
        if selected is None:
            selected = self._selected[key] = matches_namespace(selector, attributes, self.labels_for(policy))
        return selected

    def namespace_object_as_cel_value(self) -> JSON:
        """Return the value of `namespaceObject`; null if the request is about a cluster-scoped object or a Namespace.

        Raises:
            BindingError: the namespace does not exist.
            LookupFailed: the namespace is not known.
        """
        name = self._attributes.namespace
        if not name or self._attributes.kind == NAMESPACE:
            return None
        namespace = self._look_up_namespace()
        if namespace is None:
            raise BindingError(f'namespaces "{name}" not found')
        self._require_known_namespace(namespace)
        return namespace_object(namespace)

    def _require_known_namespace(self, namespace: JSON) -> None:
        if isinstance(namespace, AssumedNamespace) and not self._cluster.is_whole():
            raise UnknownLabels(self._attributes.namespace)

    def _look_up_namespace(self) -> JSON:
        if self._namespace is _NOT_LOOKED_UP:
            self._namespace = self._cluster.get(NAMESPACE, "", self._attributes.namespace)
        return self._namespace


class RequestVariables:
    """The values of `request` and `authorizer` for one request, which all policies share.

    `authority` knows the rights of users. Without `authority`, every check of `authorizer` is an error.
    """

    __slots__ = ("_attributes", "_of_matches", "authority")

    def __init__(self, attributes: Attributes, authorizer: Authorizer | None) -> None:
        self._attributes = attributes
        self.authority = authorizer
        self._of_matches: list[tuple[Match, JSON]] = []

    def request(self, match: Match) -> JSON:
        """Return the value of `request` for a match."""
        # there is nearly always one value, for the match of the sent request
        for cached, shown in self._of_matches:
            if cached.resource == match.resource and cached.kind == match.kind:
                return shown
        shown = request_as_cel_value(self._attributes, match.resource, match.kind)
        if not is_user_known(self._attributes):
            shown = {**shown, "userInfo": _UNKNOWN_USER}
        self._of_matches.append((match, shown))
        return shown

    def authorizer(self) -> Mapping[str, Any]:
        """Return `authorizer` for the user of the request, and `authorizer.requestResource` for the requested resource.

        Without an authorizer, every check is an error.
        """
        from webhook.cel.library import authorizer

        decides = self.authority or authorizer.NO_DECISIONS
        user, requested = self._attributes.user_info.username, self._attributes.request_resource
        return {
            "authorizer": authorizer.authorizer_of(user, decides),
            REQUEST_RESOURCE: authorizer.check_of_request_resource(
                user,
                decides,
                group=requested.group,
                resource=requested.resource,
                subresource=self._attributes.sub_resource,
                namespace=self._attributes.namespace,
                name=self._attributes.name,
            ),
        }


def request_as_cel_value(attributes: Attributes, resource: GroupVersionResource, kind: GroupVersionKind) -> JSON:
    """Return the variable `request`: the AdmissionRequest without uid, object and oldObject."""
    shown_kind, shown_resource = _kind_as_json(kind), _resource_as_json(resource)
    shown: dict[str, JSON] = {
        "kind": shown_kind,
        "resource": shown_resource,
        "requestKind": shown_kind if attributes.request_kind == kind else _kind_as_json(attributes.request_kind),
        "requestResource": (
            shown_resource
            if attributes.request_resource == resource
            else _resource_as_json(attributes.request_resource)
        ),
        "operation": str(attributes.operation),
        "userInfo": _user_as_json(attributes.user_info),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    if attributes.sub_resource:
        shown["subResource"] = attributes.sub_resource
    if sub_resource := attributes.request_sub_resource or attributes.sub_resource:
        shown["requestSubResource"] = sub_resource
    if attributes.name:
        shown["name"] = attributes.name
    if attributes.namespace:
        shown["namespace"] = attributes.namespace
    return shown


class _UnknownUser(PartialObject):
    """The user of a request that was built from an object alone. has() finds no field. Reading a field without has()
    raises NoDecision, because API servers always send a name.
    """

    def __contains__(self, _: object) -> bool:
        return False


_UNKNOWN_USER: Final = _UnknownUser(
    {}, lambda _: False, "request.userInfo.", "`{}` is not known, because only the object is given"
)


def _kind_as_json(kind: GroupVersionKind) -> JSON:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}  # _asdict is three times slower


def _resource_as_json(resource: GroupVersionResource) -> JSON:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def _user_as_json(user: UserInfo) -> JSON:
    shown: Mapping[str, JSON] = {
        "username": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in shown.items() if value}


def namespace_object(namespace: JSON) -> JSON:
    """Return a Namespace with only the fields that expressions may read."""
    metadata = namespace.get("metadata") or {}
    return {
        "metadata": {key: value for key, value in metadata.items() if key in NAMESPACE_METADATA and value is not None},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
