"""The device claims of an object's pods with their requests, and the references of containers to the claims.

Every entry of `spec.resourceClaims` in a Pod or a pod template is looked up as a ResourceClaim or a
ResourceClaimTemplate in the object's namespace. Every entry of `resources.claims` in a container is a reference. The
type of the devices of a class is guessed from the name of the class. Source of the rules and defaults:
k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go and pkg/apis/resource.

A claim or a template that is not found counts as absent only if the view has all objects of the cluster. A template
that a ComputeDomain names is called promised: the controller of the ComputeDomain creates the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, NAMESPACE
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.dra.device_claims_classes import DEVICE_CLASS, DeviceClasses
from webhook.facts.dra.requested_devices import NO_CONTENTS, ClaimContents, contents_of_claim
from webhook.facts.dra.requests import DeviceRequestOfClaim
from webhook.facts.dra.types import ComputeDomain, ResourceClaim, ResourceClaimTemplate
from webhook.facts.fact import Missing
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES, ClusterView
from webhook.rules.problem import MissingObject
from webhook.typed.collections import Items
from webhook.typed.objects import Namespace
from webhook.typed.pods import Container, PodTemplate
from webhook.typed.pods import PodClaim as Entry
from webhook.workloads.podsets import PodSet

DEFAULT: Final = "default"
"""The namespace that kubectl uses for an object without a namespace."""


def _template_of_compute_domain(domain: JSON) -> Sequence[str]:
    return (ComputeDomain.of(domain).spec.channel.resource_claim_template.name,)


_BY_TEMPLATE: Final = Index("the template that it creates", _template_of_compute_domain)
DOMAINS: Final = interest_in_fields(
    ComputeDomain.gvk, "spec.channel.resourceClaimTemplate.name", indexes=(_BY_TEMPLATE,)
)
_SHOWN: Final = 3
ClaimKind: TypeAlias = type[ResourceClaim | ResourceClaimTemplate]


class AbsenceOfClaim(Struct, frozen=True):
    """What is known about a claim or a template that was not found.

    Args:
        is_absent: whether the claim or template is known to be absent.
        is_promised: whether a ComputeDomain creates the template.
        nearest: the existing name that was probably intended.
        elsewhere: other namespaces that have an object of this name, at most three.
    """

    is_absent: bool = False
    is_promised: bool = False
    nearest: str = ""
    elsewhere: tuple[str, ...] = ()


class AbsenceFinder:
    """Finds out what is known about claims and templates that were not found in the view's namespace."""

    def __init__(self, view: ClusterView) -> None:
        self._view = replace(view, namespace=view.namespace or DEFAULT)

    def find_absence(self, kind: ClaimKind, name: str) -> AbsenceOfClaim:
        """Return what is known about an object that was not found."""
        view = self._view
        is_promised = kind is ResourceClaimTemplate and is_promised_by_compute_domain(view, name)
        elsewhere = {namespace or DEFAULT for namespace in view.namespaces_with(kind.gvk, name)}
        nearest = view.nearest_here(name, kind.gvk)
        return AbsenceOfClaim(
            is_absent=view.is_whole(kind.gvk) and not is_promised,
            is_promised=is_promised,
            nearest=nearest,
            elsewhere=tuple(sorted(elsewhere)[:_SHOWN]),
        )


def is_promised_by_compute_domain(view: ClusterView, name: str) -> bool:
    """Return whether a ComputeDomain of the view's namespace creates a template with this name."""
    here = replace(view, namespace=view.namespace or DEFAULT)
    return next(here.typed_under_key(ComputeDomain, _BY_TEMPLATE, name), None) is not None


CLAIM: Final = ResourceClaim.gvk
TEMPLATE: Final = ResourceClaimTemplate.gvk
LOOKUPS: Final = (
    interest_in_fields(CLAIM, "spec.devices.requests", "spec.devices.config"),
    interest_in_fields(TEMPLATE, "spec.spec.devices.requests"),
    interest_in_fields(DEVICE_CLASS, "spec.extendedResourceName"),
    DOMAINS,
    NAMESPACES,
)
Source: TypeAlias = Literal["claim", "template", "both", "none", "old"]
_KINDS: Final[Mapping[str, ClaimKind]] = {"claim": ResourceClaim, "template": ResourceClaimTemplate}
_ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
_OLD_ADMIN_ACCESS: Final = "resource.k8s.io/admin-access"
"""The label that Kubernetes 1.33 reads (k8s.io/api v0.33 resource/v1beta1/types.go DRAAdminNamespaceLabelKey)."""


class PodClaim(Struct, kw_only=True):
    """An entry of `spec.resourceClaims`.

    Args:
        pod_set: the name of the pod set.
        pods: the number of pods of the pod set; None if the number is not known.
        at: the path of the entry.
        name: the name by which containers refer to the claim.
        source: what the entry names: `claim`, `template`, `both`, `none`, or `old` for the old field `source`.
        reference: the name of the claim or template.
        is_found: whether the claim or template exists.
        absence: what is known about a claim or template that was not found.
        contents: the contents of the claim or template.
        requests: the requests of the claim, each followed by its alternatives.
        users: the paths of the entries in containers that refer to the claim.
        is_duplicate: whether an earlier entry has the same name.
    """

    pod_set: str
    pods: int | None
    at: FieldPath
    name: str
    source: Source
    reference: str
    is_found: bool = False
    absence: AbsenceOfClaim = field(default_factory=AbsenceOfClaim)
    contents: ClaimContents = NO_CONTENTS
    requests: Items[DeviceRequestOfClaim]
    users: tuple[FieldPath, ...] = ()
    is_duplicate: bool = False

    @property
    def referenced_kind(self) -> ClaimKind | None:
        """Return the kind of the object that the claim names; None if the claim names no object, or two."""
        return _KINDS.get(self.source)

    @property
    def kind(self) -> str:
        """Return ResourceClaim or ResourceClaimTemplate; "" if the claim names no object, or two."""
        return self.referenced_kind.gvk.kind if self.referenced_kind else ""


class ClaimReference(Struct, frozen=True, kw_only=True):
    """An entry of `resources.claims` of a container.

    Args:
        pod_set: the name of the pod set.
        container: the name of the container.
        at: the path of the entry.
        name: the name of the claim in the pod.
        request: the request of the claim; "" for all requests.
        claim: the claim; None if the pod has no claim with this name.
        is_duplicate: whether an earlier entry of the container refers to the same claim and the same request. If one of
            two entries is for all requests, the later entry is also a duplicate.
        nearest_request: the request that was probably intended.
    """

    pod_set: str
    container: str
    at: FieldPath
    name: str
    request: str
    claim: PodClaim | None
    is_duplicate: bool
    nearest_request: str

    @property
    def is_resolved(self) -> bool:
        """Return whether the object of the claim was found."""
        return self.claim is not None and self.claim.is_found

    @property
    def is_request_found(self) -> bool:
        """Return whether the claim is known to have the request."""
        if self.claim is None or not self.claim.is_found:
            return False
        return not self.request or self.request in self.claim.contents.request_names


class ClaimsOfPods(Struct, frozen=True):
    """The claims of an object's pods, the references of containers to these claims, and the missing objects."""

    claims: Items[PodClaim]
    references: Items[ClaimReference]
    missing: Missing


def pod_claims(subject: Subject) -> ClaimsOfPods:
    """Return the claims of an object's pods. Call this function through `Subject.once`."""
    listed = subject.once(pod_sets).all
    return claims_of_templates([(each, template_of(each, subject)) for each in listed], subject.cluster_view())


def claims_of_templates(templates: Iterable[tuple[PodSet, PodTemplate]], view: ClusterView) -> ClaimsOfPods:
    """Return the claims of some pod sets, each with its template."""
    resolver, deadline = _ClaimResolver(view), view.deadline
    claims: list[PodClaim] = []
    references: list[ClaimReference] = []
    for podset, template in templates:
        spec = template.spec
        listed = [container for container in spec.all_containers() if container.resources.claims]
        entries = spec.resource_claims.of([entry for entry in spec.resource_claims if entry])
        if entries or listed:
            declared = [resolver.resolve_claim(entry, podset) for entry in entries]
            first = _first_claims_by_name(declared)
            referring = [
                reference for each in listed for reference in _references_of_container(each, podset, first, view)
            ]
            _store_references_in_claims(declared, referring)
            claims.extend(declared)
            references.extend(referring)
    return ClaimsOfPods(Items(claims, deadline), Items(references, deadline), view.missing_objects_by_field())


def why_no_admin_access(view: ClusterView) -> str | None:
    """Return why the labels of the namespace do not allow admin access; "" if they allow it, and None if the namespace
    is not in the view.

    Source: k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForAdmin.
    """
    name = view.namespace or DEFAULT
    namespace = view.find_namespace(name)
    if namespace is None:
        view.note_missing(MissingObject(kind=NAMESPACE.kind, name=name))
        return None
    labels = Namespace.of(namespace).metadata.labels
    if labels.get(_ADMIN_ACCESS) == "true":
        return ""
    old = f" (only Kubernetes 1.33 reads {_OLD_ADMIN_ACCESS})" if labels.get(_OLD_ADMIN_ACCESS) == "true" else ""
    return f'lacks the label {_ADMIN_ACCESS}: "true"{old}'


class _ClaimResolver:
    """Resolves claims with the objects of a view."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view.for_fields("claims", "references")
        self._classes = DeviceClasses(view.for_fields("claims"))
        self._absences = AbsenceFinder(view)

    def resolve_claim(self, entry: Entry, podset: PodSet) -> PodClaim:
        """Return an entry of `spec.resourceClaims` with the requests of the claim or template that it names."""
        claim = PodClaim(
            pod_set=podset.name,
            pods=podset.pods,
            at=podset.locate(entry.at),
            name=entry.name,
            source=_source_of_entry(entry),
            reference=entry.resource_claim_name or entry.resource_claim_template_name,
            requests=Items((), self._view.deadline),
        )
        if claim.referenced_kind and self._view.namespace:  # a cluster-scoped runtime has no namespace
            self._look_up_claim(claim, claim.referenced_kind)
        return claim

    def _look_up_claim(self, claim: PodClaim, kind: ClaimKind) -> None:
        obj = self._view.copy_without_missing_objects().find(kind, claim.reference)
        if not obj:
            claim.absence = self._absences.find_absence(kind, claim.reference)
            if not claim.absence.is_promised:
                self._view.get(kind.gvk, claim.reference)  # notes the object as missing
            return
        claim.is_found, claim.contents = True, contents_of_claim(obj, self._classes, self._view)
        asked = [choice for request in claim.contents.requests for choice in request.self_and_alternatives]
        claim.requests = Items(asked, self._view.deadline)


def _source_of_entry(entry: Entry) -> Source:
    if entry.resource_claim_name:
        return "both" if entry.resource_claim_template_name else "claim"
    if entry.resource_claim_template_name:
        return "template"
    return "old" if entry.has("source") else "none"


def _first_claims_by_name(claims: Sequence[PodClaim]) -> dict[str, PodClaim]:
    """Return the first claim of each name, and mark later claims as duplicates."""
    first: dict[str, PodClaim] = {}
    for claim in claims:
        claim.is_duplicate = first.setdefault(claim.name, claim) is not claim
    return first


def _store_references_in_claims(claims: Sequence[PodClaim], references: Sequence[ClaimReference]) -> None:
    """Set `users` of each claim. Claims with the same name have the same users."""
    users: dict[str, list[FieldPath]] = {}
    for reference in references:
        users.setdefault(reference.name, []).append(reference.at)
    for claim in claims:
        claim.users = tuple(users.get(claim.name, ()))


def _references_of_container(
    container: Container, podset: PodSet, first: Mapping[str, PodClaim], view: ClusterView
) -> Iterator[ClaimReference]:
    before: dict[str, set[str]] = {}
    for entry in container.resources.claims:
        if not entry:
            continue
        name, request = entry.name, entry.request
        claim, requests = first.get(name), before.setdefault(name, set())
        known = claim.contents.request_names if claim and claim.is_found and request else ()
        yield ClaimReference(
            pod_set=podset.name,
            container=container.name,
            at=podset.locate(container.at) + entry.at[len(container.at) :],
            name=name,
            request=request,
            claim=claim,
            is_duplicate=bool(requests) and (request == "" or not requests.isdisjoint((request, ""))),
            nearest_request=view.nearest(request, known) if known else "",
        )
        requests.add(request)
