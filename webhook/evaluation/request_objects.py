"""Makes the targets of one request: the request's own object, its pod templates, and embedded objects.

A pod template becomes a virtual Pod in the request's namespace. An object inside another object, such as a Job in an
AppWrapper, has the namespace and the operation of the request. Paths in messages and problems begin at the root of
the request's own object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from msgspec import structs

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.apimachinery.releases import Release
from webhook.deadline import Deadline
from webhook.evaluation.conversions import convert_to_version
from webhook.evaluation.merged_pods import (
    MergedPod,
    PartialObject,
    PartialPod,
    pod_of_partial_template,
    pods_outside_object,
)
from webhook.evaluation.typed_input import DecodedRequestObjects, decode_request_objects, inner_object_as_sent
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.releases import installation_with_assumptions
from webhook.facts.view import ClusterView
from webhook.patch.schema import is_builtin
from webhook.policy.candidates import InnerObjects, request_about_pods
from webhook.policy.compiled import Policy
from webhook.policy.matching import Match, match_of_unconverted
from webhook.rules.problem import MissingObject, Problem
from webhook.schema import DecodedValue, Mismatch
from webhook.typed.objects import Object
from webhook.workloads.embedded import EmbeddedObject, embedded_objects
from webhook.workloads.podsets import PodSet, group_kind, patch_templates, pod_templates
from webhook.workloads.resource_fields import may_have_resources
from webhook.workloads.table import Table


@dataclass(slots=True)  # not frozen, because creating a frozen object takes twice as long
class EvaluationTarget:
    """One object on which a policy is evaluated, in the version that matched. Treat its content as immutable.

    Args:
        attributes: the attributes of the target.
        match: the match for the variable `request`.
        object: the decoded object.
        old_object: the decoded old object.
        written: the object before decoding, to which mutations are applied.
        podset: the template of a virtual Pod, or the place of an embedded object.
        mismatches: the values of wrong types. If there are any, the objects are not decoded.
        omitted: the paths of parts that `written` has and `object` lacks.
        criteria_attributes: the attributes for matching criteria, if they differ from `attributes`.
        place: the printed path of the podset.
        merged: a pod that is not in the object.
        missing: the missing objects without which some pods are not known. Such a target represents all of these pods.
        has_new_spec: whether the condition of `updates: spec` holds; None before a policy needs it.
        concerns: the words of the annotation `concerns` that apply to a Pod; None before a policy needs them.
        shown_objects: object and old object in the form for expressions; None before an expression needs them.
        typed_objects: the typed forms of the object, by their types.
        subjects: the subjects for facts and checks, by the `id` of the assumptions; each subject keeps its
            assumptions alive.
    """

    attributes: Attributes
    match: Match
    object: JSON
    old_object: JSON
    written: JSON
    podset: PodSet | None = None
    mismatches: tuple[Mismatch, ...] = ()
    omitted: tuple[FieldPath, ...] = ()
    criteria_attributes: Attributes | None = None
    place: str = ""
    merged: MergedPod | PartialPod | None = None
    missing: tuple[MissingObject, ...] = ()
    has_new_spec: bool | None = field(default=None, init=False)
    concerns: frozenset[str] | None = field(default=None, init=False)
    shown_objects: tuple[JSON, JSON] | None = field(default=None, init=False, repr=False)
    typed_objects: dict[type[Object], Any] = field(default_factory=dict, init=False, repr=False)
    subjects: dict[int, Subject] = field(default_factory=dict, init=False, repr=False)

    @property
    def attributes_for_criteria(self) -> Attributes:
        return self.criteria_attributes or self.attributes

    @property
    def kind(self) -> GroupVersionKind:
        """Return the kind of the object: Pod for a template."""
        return self.attributes.kind if self.podset else self.match.kind

    def objects_for_expressions(self, deadline: Deadline) -> tuple[JSON, JSON]:
        """Return the object and the old object in the form for expressions. Embedded objects have the form in which API
        servers send objects.
        """
        if self.podset is None or self.mismatches:
            return self.object, self.old_object
        if self.shown_objects is None and self.podset.partial is not None:
            partial = self.podset.partial
            self.shown_objects = (
                pod_of_partial_template(self.object, partial, deadline),
                pod_of_partial_template(self.old_object, partial, deadline),
            )
        if self.shown_objects is None:
            before, is_encoded = self.old_object, self.attributes.is_decoded
            self.shown_objects = (
                inner_object_as_sent(self.object, self.kind, self.podset, deadline, is_encoded=is_encoded),
                before and inner_object_as_sent(before, self.kind, self.podset, deadline, is_encoded=is_encoded),
            )
        return self.shown_objects

    def object_for_mutations(self, deadline: Deadline) -> JSON:
        """Return the object to which patches apply: the request's own object unchanged, or an inner object as an API
        server would send it.
        """
        if self.podset is None:
            return self.written
        if self.podset.partial is not None and not self.mismatches:
            return inner_object_as_sent(
                self.object, self.kind, self.podset, deadline, is_encoded=self.attributes.is_decoded
            )
        return self.objects_for_expressions(deadline)[0]

    def reroot(self, message: str) -> tuple[str, str]:
        """Return the path at the beginning of a message, and the message. In both, the path is the path in the whole
        object.

        The message is from a policy in CEL and may begin with a field path, like errors of API servers. Problems of
        checks have a separate path, which `locate` changes.
        """
        path, rest = paths.split_off_leading_path(message) if message else ((), "")
        if self.podset is None:
            return paths.path_as_text(path), message
        if self.merged is not None:
            place, text = self.merged.locate(path, rest if path else message)
            return place, text if message else ""
        new_path = paths.path_as_text(self.podset.locate(path)) if path else self.place
        if not message:
            return new_path, ""
        return new_path, f"{new_path}{self._reroot_other_paths(rest)}" if path else f"{new_path}: {message}"

    def locate(self, problem: Problem) -> Problem:
        """Return a problem of this object with its paths in the whole object."""
        podset = self.podset
        if podset is None:
            return problem
        path, *also = (
            paths.path_as_text(podset.locate(paths.parse_path(each)) if each else podset.path)
            for each in (problem.path, *problem.also)
        )
        return structs.replace(problem, path=path, also=tuple(also))

    def _reroot_other_paths(self, text: str) -> str:
        if self.podset is None or self.podset.elsewhere:
            return text
        return paths.replace_spec_prefixes(text, paths.path_as_text(self.podset.locate(("spec",))))


_WORK_OF_VIRTUAL_POD: Final = 10
"""The units of work for one virtual Pod, about 8 microseconds."""
_Listed: TypeAlias = Callable[[JSON, Table, ClusterView], tuple[PodSet, ...]]


class RequestObjects:
    """The targets of one request. A target is created when a policy first needs it, and all policies share the target.

    `sent` is the match of the request itself. `typed_own` has the request's own object if an API server has decoded
    this object; otherwise it is empty.
    """

    _decoded: DecodedRequestObjects | None = None
    _own: EvaluationTarget | None = None
    _resources: tuple[EvaluationTarget, ...] | None = None
    _pods: tuple[EvaluationTarget, ...] | None = None
    _patches: tuple[EvaluationTarget, ...] | None = None
    _inner: tuple[EvaluationTarget, ...] | None = None
    _outside: tuple[EvaluationTarget, ...] | None = None
    _possible: InnerObjects | None = None

    def __init__(self, attributes: Attributes, table: Table, view: ClusterView) -> None:
        self.attributes = attributes
        self.sent = match_of_unconverted(attributes)
        self._of_kinds: dict[InnerObjects, tuple[EvaluationTarget, ...]] = {}
        self._table = table
        self._view = view
        self._is_typed = attributes.is_decoded and is_builtin(attributes.kind)
        obj, before = attributes.object, attributes.old_object
        self.typed_own = (EvaluationTarget(attributes, self.sent, obj, before, obj),) if self._is_typed else ()

    def own_object_target(self, match: Match) -> EvaluationTarget:
        """Return the request's own object, in the version that matched."""
        if self._own is None:
            typed = self.typed_own or (self._decoded_target(self.attributes, self._decoded_request_objects(), None),)
            self._own = typed[0]
        own = self._own
        if match is self.sent:
            return own
        deadline = self._view.deadline
        now, before = (convert_to_version(each, match, deadline) for each in (own.object, own.old_object))
        written = now if own.written is own.object else convert_to_version(own.written, match, deadline)
        return EvaluationTarget(own.attributes, match, now, before, written, None, own.mismatches, own.omitted)

    def inner_targets(self, inner: InnerObjects, policy: Policy) -> tuple[EvaluationTarget, ...]:
        """Return the targets inside the request's own object, of the kinds that `inner` names. A mutating policy is
        evaluated on merged pods only in files.

        Raises:
            LookupFailed: the installed release of Trainer is not known.
        """
        if inner.merged_pods and policy.kind == "mutating" and not self.attributes.is_plain:
            inner = inner._replace(merged_pods=False)
        targets = self._of_kinds.get(inner)
        if targets is None:
            possible = self._possible_inner_objects()
            targets = self.own_object_as_pod_target() if inner.has_resources else ()
            if inner.pods:
                targets += self.pod_template_targets()
            if inner.merged_pods and possible.merged_pods:
                targets += self.targets_outside_object()
            if inner.patches and possible.patches:
                targets += self.patch_targets()
            if inner.objects and possible.objects:
                targets += self.embedded_targets()
            self._of_kinds[inner] = targets
        return targets

    def _possible_inner_objects(self) -> InnerObjects:
        """Return the kinds of inner objects that the request's objects may contain. Most kinds have only pod
        templates.
        """
        if self._possible is None:
            objects = (self.attributes.object, self.attributes.old_object)
            rows = [row for obj in objects if obj is not None and (row := self._table.row(*group_kind(obj)))]
            holds_objects = any(row.holds_objects for row in rows)
            is_merged = holds_objects or any((row.group, row.kind) == TRAIN_JOB for row in rows)
            self._possible = InnerObjects(
                has_resources=True,
                pods=True,
                merged_pods=is_merged or self.attributes.is_plain,
                patches=any(row.fragments for row in rows),
                objects=holds_objects,
            )
        return self._possible

    def own_object_as_pod_target(self) -> tuple[EvaluationTarget, ...]:
        """Return the request's own object for policies about Pods, if it has resources outside its pod templates."""
        if self._resources is None:
            self._resources = ()
            if may_have_resources(self.attributes.object, self._table):
                self._resources = (self._as_pod_target(self.own_object_target(self.sent)),)
        return self._resources

    def _as_pod_target(self, own: EvaluationTarget) -> EvaluationTarget:
        target = replace(own, criteria_attributes=request_about_pods(self.attributes))
        target.subjects, target.typed_objects = own.subjects, own.typed_objects  # both targets have the same object
        return target

    def pod_template_targets(self) -> tuple[EvaluationTarget, ...]:
        if self._pods is None:
            self._pods = self._virtual_pods(pod_sets.list_pod_sets)
        return self._pods

    def targets_outside_object(self) -> tuple[EvaluationTarget, ...]:
        """Return the pods that are not in the object, such as those of a TrainJob, and one target for all unknown
        pods.

        Raises:
            LookupFailed: the installed release of Trainer is not known.
        """
        if self._outside is None:
            own, typed = self.own_object_target(self.sent), self._decoded_request_objects()
            decoded = replace(self.attributes, object=typed.object, old_object=typed.old_object)
            outside = pods_outside_object(decoded, self._table, self._view)
            if own.mismatches and outside.pods:  # pods that are created from an object with wrong types are unknown
                self._outside = (self._as_pod_target(own),)
                return self._outside
            before = {(each.path, each.name): each for each in outside.before}
            self._outside = tuple(
                self._merged_target(pod, before.get((pod.path, pod.name)))
                for pod in self._view.deadline.items_with_clock_checks(outside.pods)
            )
            if outside.missing:
                self._outside += (self._target_of_unknown_pods(outside.missing),)
        return self._outside

    def _merged_target(self, pod: MergedPod | PartialPod, before: MergedPod | PartialPod | None) -> EvaluationTarget:
        attributes, podset = self.attributes, pod.podset
        new_pod = self._pod_outside_object(pod)
        now = new_pod if attributes.object is not None else None
        old = new_pod if now is None else before and self._pod_outside_object(before)
        virtual = request_about_pods(attributes, object=now, old_object=old, is_decoded=False)
        place = path_as_text(podset.path)
        target = EvaluationTarget(virtual, self.sent, now, old, now, podset, place=place, merged=pod)
        if isinstance(pod, PartialPod):
            target.shown_objects = (now, old)  # no defaults may be added to these objects
        return target

    def _pod_outside_object(self, pod: MergedPod | PartialPod) -> JSON:
        if isinstance(pod, PartialPod):
            return pod.pod(self.attributes, self._view.deadline)
        template_pod = pod_of_template(pod.podset.template, self.attributes)
        # the webhook of JobSet sets this in the JobSet of Trainer (kubernetes-sigs/jobset
        # pkg/webhooks/jobset_webhook.go Default)
        return {**template_pod, "spec": {"restartPolicy": "OnFailure", **template_pod["spec"]}}

    def _target_of_unknown_pods(self, missing: tuple[MissingObject, ...]) -> EvaluationTarget:
        nothing: JSON = {}
        virtual = request_about_pods(self.attributes, object=nothing, old_object=None, is_decoded=False)
        podset = PodSet(name="", path=(), template=nothing)
        target = EvaluationTarget(virtual, self.sent, nothing, None, nothing, podset, missing=missing)
        unknown = PartialObject({}, lambda _: False, "", "{} of these pods is not known")
        old, new = self.attributes.old_object, self.attributes.object
        target.shown_objects = (None if new is None else unknown, None if old is None else unknown)
        return target

    def patch_targets(self) -> tuple[EvaluationTarget, ...]:
        """Return virtual Pods for the patches in the request. Each patch changes a pod template of another object.

        No policy is evaluated on parts of a patch that the installed release of Trainer drops. In a request of an API
        server, these parts are already dropped, so all parts are evaluated.

        Raises:
            LookupFailed: the installed release is unknown.
        """
        if self._patches is None:
            pods = self._virtual_pods(_patch_templates_of)
            if pods and not self.attributes.is_decoded:
                release = installation_with_assumptions(
                    self._view.copy_without_missing_objects(), ClusterAssumptions()
                ).release
                if not self._keeps_all_fields(release):
                    pruned = [self._pruned_target(target, release) for target in pods]
                    pods = tuple(target for target in pruned if target is not None)
            self._patches = pods
        return self._patches

    def embedded_targets(self) -> tuple[EvaluationTarget, ...]:
        """Return the objects that are embedded in the request's own object, such as those in an AppWrapper."""
        if self._inner is None:
            paced = self._view.deadline.items_with_clock_checks
            before, now = (
                {each.path: each for each in paced(embedded_objects(obj, self._table, self._view.deadline))}
                for obj in (self.attributes.old_object, self.attributes.object)
            )
            now = now or before
            self._inner = tuple(self._inner_target(each, before.get(path)) for path, each in paced(now.items()))
        return self._inner

    def _decoded_request_objects(self) -> DecodedRequestObjects:
        if self._decoded is None:
            self._decoded = decode_request_objects(self.attributes, self._view.deadline)
        return self._decoded

    def _keeps_all_fields(self, release: Release) -> bool:
        from webhook.facts.train_job_pods.train_job_and_runtime_fields import cached_pruned_object

        obj, kind = self.attributes.object, self.attributes.kind.kind
        is_new = obj is not None and self.attributes.old_object is None
        return is_new and cached_pruned_object(obj, kind, release, self._view) is obj

    def _pruned_target(self, target: EvaluationTarget, release: Release) -> EvaluationTarget | None:
        """Return a patch without the fields that this release of Trainer drops; None if Trainer drops all fields."""
        now, before = (self._pruned_pod(each, target, release) for each in (target.object, target.old_object))
        if now is target.object and before is target.old_object:
            return target
        if now is None and before is None:
            return None
        attributes = replace(target.attributes, object=now, old_object=before)
        written = now if target.written is target.object else self._pruned_pod(target.written, target, release)
        return replace(target, attributes=attributes, object=now, old_object=before, written=written)

    def _pruned_pod(self, pod: JSON, target: EvaluationTarget, release: Release) -> JSON:
        if pod is None or target.podset is None:
            return pod
        from webhook.facts.train_job_pods.train_job_and_runtime_fields import pruned_value_at

        at, kind = target.podset.locate(("spec",)), self.attributes.kind.kind
        spec = pruned_value_at(pod["spec"], at, kind, release, self._view.deadline)
        return pod if spec is pod["spec"] else None if spec is None else {**pod, "spec": spec}

    def _virtual_pods(self, list_objects: _Listed) -> tuple[EvaluationTarget, ...]:
        pairs = [
            (podset, old)
            for podset, old in self._view.deadline.items_with_clock_checks(self._template_pairs(list_objects))
            if podset.path
        ]
        templates = self._decoded_request_objects().decode_templates([podset for podset, _ in pairs])
        return tuple(
            self._virtual_pod(podset, template, old) for (podset, old), template in zip(pairs, templates, strict=True)
        )

    def _virtual_pod(self, podset: PodSet, template: DecodedValue, old: PodSet | None) -> EvaluationTarget:
        self._view.deadline.spend(_WORK_OF_VIRTUAL_POD)
        attributes = self.attributes
        now, written = (None, None) if attributes.object is None else _pods_of_template(podset, template, attributes)
        is_as_written = old is None or bool(template.mismatches)
        before = old and pod_of_template(
            old.template if is_as_written else self._decoded_request_objects().old_template(old), attributes
        )
        virtual = request_about_pods(attributes, object=now, old_object=before, is_decoded=self._is_typed)
        place = podset.name if podset.is_patch else path_as_text(podset.path)  # the name of a patch is its place
        return EvaluationTarget(virtual, self.sent, now, before, written, podset, template.mismatches, place=place)

    def _inner_target(self, embedded: EmbeddedObject, before: EmbeddedObject | None) -> EvaluationTarget:
        """Return one embedded object as if a user had sent it alone."""
        attributes = self.attributes
        group, version = embedded.row.group, _version_of_object(embedded.object)
        kind = GroupVersionKind(group, version, embedded.row.kind)
        resource = GroupVersionResource(group, version, embedded.row.resource)
        written = _with_namespace(embedded.object, attributes) if attributes.object is not None else None
        old = _with_namespace(before.object, attributes) if before is not None else None
        virtual = replace(attributes, kind=kind, resource=resource, request_kind=kind, request_resource=resource)
        virtual = replace(virtual, object=written, old_object=old, is_decoded=False)
        place = PodSet(name="", path=embedded.path, template=embedded.object)
        return self._decoded_target(virtual, decode_request_objects(virtual, self._view.deadline), place)

    def _decoded_target(
        self, attributes: Attributes, typed: DecodedRequestObjects, place: PodSet | None
    ) -> EvaluationTarget:
        """An object with values of wrong types outside of its pod templates is not decoded."""
        written, old = attributes.object, attributes.old_object
        templates = pod_templates(written, self._table, self._view.deadline) if typed.mismatches else ()
        mismatches = typed.mismatches_outside_templates(templates)
        now, before = (written, old) if mismatches else (typed.object, typed.old_object)
        at = path_as_text(place.path) if place else ""
        if now is not written or before is not old:
            attributes = replace(attributes, object=now, old_object=before)
        omitted = typed.omitted_paths(templates)
        return EvaluationTarget(attributes, self.sent, now, before, written, place, mismatches, omitted, place=at)

    def _template_pairs(self, list_objects: _Listed) -> Iterator[tuple[PodSet, PodSet | None]]:
        """Yield the templates or patches of the object, each with the template or patch of the same name in the old
        object. On DELETE, both members of each pair are from the old object.
        """
        attributes, table, view = self.attributes, self._table, self._view
        old = list_objects(attributes.old_object, table, view) if attributes.old_object else ()
        before = {podset.name: podset for podset in old}
        if attributes.object is None:
            yield from ((podset, podset) for podset in before.values())
            return
        for podset in list_objects(attributes.object, table, view):
            yield podset, before.get(podset.name)


def _patch_templates_of(obj: JSON, table: Table, view: ClusterView) -> tuple[PodSet, ...]:
    return patch_templates(obj, table, view.deadline)


def _pods_of_template(podset: PodSet, template: DecodedValue, attributes: Attributes) -> tuple[JSON, JSON]:
    """Return a template as a Pod, decoded and as written. If the two do not differ, both are the same value."""
    written = pod_of_template(podset.template, attributes)
    is_as_written = bool(template.mismatches) or template.value is podset.template
    return (written if is_as_written else pod_of_template(template.value, attributes)), written


def _version_of_object(obj: JSON) -> str:
    """Return the version of an embedded object; "" if apiVersion is missing."""
    written = obj.get("apiVersion")
    return written.rpartition("/")[2] if isinstance(written, str) else ""


def _with_namespace(obj: JSON, attributes: Attributes) -> JSON:
    """Return an object with the request's namespace set."""
    metadata = obj.get("metadata") or {}
    if not attributes.namespace or not isinstance(metadata, dict) or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": attributes.namespace}}


def pod_of_template(template: JSON, attributes: Attributes) -> JSON:
    """Return a template as a Pod."""
    metadata = metadata_of(template)
    if attributes.namespace and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": attributes.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def metadata_of(template: JSON) -> JSON:
    """Return the metadata of a template; {} if the metadata is not an object."""
    metadata = template.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
