"""The values behind the names of an expression: request, namespaceObject, authorizer, facts.

Knows one request and the view of the cluster; computes nothing before it is asked, and everything once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.attributes import JSON, NAMESPACE, POD, Attributes, GroupVersionKind, GroupVersionResource
from webhook.cluster import Cluster
from webhook.cluster.layered import LayeredCluster
from webhook.deadline import Deadline
from webhook.decisions import Fault
from webhook.errors import BindingError, EvaluationError, PatchError
from webhook.evaluation.request_variables import authorizer_values, namespace_object, request
from webhook.facts.assumptions import Assumptions, assumptions
from webhook.facts.check import NOTHING, Checked
from webhook.facts.fact import Result
from webhook.facts.registry import SHIPPED, Registry
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.manifests.label_selectors import Labels, labels_of
from webhook.paths import FieldPath
from webhook.policy.candidates import Certain
from webhook.policy.equivalent_resources import Equivalents
from webhook.policy.matching import Match, native
from webhook.policy.policy_set import PolicySet
from webhook.policy.standing_params import MOST_READ, Known
from webhook.schema import Mismatch
from webhook.workloads.podsets import PodSet
from webhook.workloads.table import Table

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


class TypedObject(Protocol):
    """What is known of an object beside its value."""

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """What of it is not of its type."""
        ...

    @property
    def omitted(self) -> tuple[FieldPath, ...]:
        """Where the object as it is written has something that the decoded one is without."""
        ...


_UNKNOWN: Final = object()


@dataclass(slots=True)
class RequestContext:
    """Everything around one request that its policies may ask about.

    Made once per review and shared by its policies; `namespace` and the labels are looked up once. `sent` is the
    request taken as what it is; `typed`, `whole`, `virtual`, `patches`, `entered`, `matched` and `own` are for
    expansion.py, which keeps the decoded objects, the request's own, its pod templates and patches and the objects
    inside it there, and by which criteria they were matched (by `id`: policies outlive a request); `certain` is what of
    that is the same for every such request; `inputs` are the
    targets whose objects are not as they were written, by `id` of the object. `undecoded` are targets that no policy
    was asked about because they are not of their type, each with the first policy that was not, `judged` those that a
    policy about types was asked about. `held` is for match_conditions.py, whether all conditions of a policy hold, with
    the object asked about, `shown` for kept_answers.py, what expressions see of a Pod by the `id` of the parameter,
    `params` for params.py, `standing` what needs no request to be found.
    `faults` is for own_fault.py: None where faults of our own are raised.
    """

    attributes: Attributes
    cluster: Cluster
    table: Table
    equivalents: Equivalents
    deadline: Deadline = field(default_factory=Deadline)
    authorizer: Authorizer | None = None
    registry: Registry = SHIPPED
    sent: Match = field(init=False)
    is_pod: bool = field(init=False)
    whole: object = None
    virtual: object = None
    patches: object = None
    entered: object = None
    typed: object = None
    inputs: dict[int, TypedObject] = field(default_factory=dict)
    judged: set[int] = field(default_factory=set)
    undecoded: dict[int, Any] = field(default_factory=dict)
    matched: dict[tuple[object, ...], Any] = field(default_factory=dict)
    held: dict[tuple[int, tuple[str, ...]], tuple[object, bool]] = field(default_factory=dict)
    params: dict[tuple[int, int], Sequence[JSON]] = field(default_factory=dict)
    own: tuple[Any, ...] | None = None
    shown: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    faults: list[Fault] | None = None
    standing: Known = field(default_factory=Known)
    certain: Mapping[int, Certain] = field(default_factory=dict)
    _sent_request: JSON = None
    _namespace: JSON = _UNKNOWN
    _labels: JSON = _UNKNOWN
    _view: View | None = None
    _subjects: dict[tuple[int, int], Subject] = field(default_factory=dict)
    _requests: dict[tuple[GroupVersionResource, GroupVersionKind], JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sent = native(self.attributes)
        self.is_pod = self.attributes.kind == POD

    def namespace_labels(self) -> Labels | None:
        """The labels of the request's namespace, None when it does not exist."""
        if self._labels is _UNKNOWN:
            namespace = self._look_up()
            self._labels = None if namespace is None else labels_of(namespace)
        labels: Labels | None = self._labels
        return labels

    def namespace_object(self) -> JSON:
        """What `namespaceObject` shows: null for Namespaces themselves and cluster-scoped objects.

        Raises:
            BindingError: the namespace does not exist.
            LookupFailed: nobody can say.

        """
        name = self.attributes.namespace
        if not name or self.attributes.kind == NAMESPACE:
            return None
        namespace = self._look_up()
        if namespace is None:
            raise BindingError(f'namespaces "{name}" not found')
        return namespace_object(namespace)

    def _look_up(self) -> JSON:
        if self._namespace is _UNKNOWN:
            self._namespace = self.cluster.get(NAMESPACE, "", self.attributes.namespace)
        return self._namespace

    def authorizer_values(self) -> Mapping[str, Any]:
        """`authorizer` and `authorizer.requestResource`; without an authorizer every check of theirs is an error."""
        from webhook.cel.library.authorizer import NO_DECISIONS

        return authorizer_values(self.attributes, self.authorizer or NO_DECISIONS)

    def fact(
        self, name: str, obj: JSON, attributes: Attributes, param: JSON = None, podset: PodSet | None = None
    ) -> Result:
        """A fact of an object, with what it could not be computed from.

        Raises:
            LookupFailed: the param cannot be read.
            EvaluationError: the object holds patches that cannot be merged.

        """
        try:
            return self.subject(obj, attributes, param, podset).result(name)
        except PatchError as error:
            raise EvaluationError(f"fact `{name}`: the patches of the object cannot be merged: {error}") from error

    def subject(self, obj: JSON, attributes: Attributes, param: JSON = None, podset: PodSet | None = None) -> Subject:
        """An object as facts and checks see it, the same one for all that assume the same of the cluster.

        podset is that of a virtual Pod.

        Raises:
            LookupFailed: the param cannot be read.

        """
        return self.subject_assuming(self.assumed(param), obj, attributes, podset)

    def subject_assuming(
        self, assumed: Assumptions, obj: JSON, attributes: Attributes, podset: PodSet | None = None
    ) -> Subject:
        """The same where it is known what is assumed."""
        key = (id(obj), id(assumed))  # a subject keeps both
        known = self._subjects.get(key)
        if known is None:
            known = self._subjects[key] = self._subject(obj, attributes, assumed, podset)
        return known

    def assumed(self, param: JSON) -> Assumptions:
        """What a parameter says of the cluster; of one that stands it is read once.

        Raises:
            LookupFailed: the param cannot be read.

        """
        known = self.standing.read.get(id(param))
        if known is not None and known[0] is param:
            assumed: Assumptions = known[1]
            return assumed
        assumed = assumptions(param)
        if len(self.standing.read) < MOST_READ:
            self.standing.read[id(param)] = param, assumed
        return assumed

    def view(self) -> View:
        """The cluster as facts see it from the request's namespace."""
        if self._view is None:
            self._view = View(self.cluster, self.attributes.namespace, self.deadline)
        return self._view

    def _subject(self, obj: JSON, attributes: Attributes, assumed: Assumptions, podset: PodSet | None) -> Subject:
        given = self.inputs.get(id(obj))
        return Subject(
            object=obj,
            old_object=attributes.old_object,
            attributes=attributes,
            cluster=self.view(),
            table=self.table,
            assumptions=assumed,
            pods=podset.pods if podset else 1,
            template_of=self.attributes.kind if podset else None,
            pod_set=podset.name if podset else "",
            is_patch=podset is not None and podset.is_patch,
            registry=self.registry,
            mismatches=given.mismatches if given else (),
            omitted=frozenset(given.omitted) if given else frozenset(),
        )

    def checked(
        self, groups: Iterable[str], obj: JSON, attributes: Attributes, param: JSON = None, podset: PodSet | None = None
    ) -> Sequence[Checked]:
        """What the checks of some groups say of an object: nothing of a group whose checks have nothing to say.

        Raises:
            LookupFailed: the param cannot be read.
            EvaluationError: the object holds patches that cannot be merged.

        """
        subject, said = self.subject(obj, attributes, param, podset), []
        for group in groups:
            try:
                checked = subject.checked(group)
            except PatchError as error:
                text = f"checks `{group}`: the patches of the object cannot be merged: {error}"
                raise EvaluationError(text) from error
            if checked is not NOTHING:
                said.append(checked)
        return said

    def request(self, match: Match) -> JSON:
        """What `request` shows for a match; the same for every policy with that match."""
        if match is self.sent:
            if self._sent_request is None:
                self._sent_request = request(self.attributes, match.resource, match.kind)
            return self._sent_request
        key = (match.resource, match.kind)
        if key not in self._requests:
            self._requests[key] = request(self.attributes, match.resource, match.kind)
        return self._requests[key]


def request_context(
    policies: PolicySet,
    attributes: Attributes,
    cluster: Cluster,
    deadline: Deadline | None = None,
    authorizer: Authorizer | None = None,
) -> RequestContext:
    """What the policies may ask about a request; shipped parameters count where the cluster has none."""
    view = LayeredCluster(cluster, policies.shipped_params) if policies.shipped_params else cluster
    return RequestContext(
        attributes=attributes,
        cluster=view,
        table=policies.table,
        equivalents=policies.equivalents,
        deadline=deadline or Deadline(),
        authorizer=authorizer,
        registry=policies.registry,
        standing=policies.standing_params.known(view),
        certain=policies.certain_matches(attributes),
    )
