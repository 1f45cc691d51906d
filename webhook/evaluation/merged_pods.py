"""Finds the pods of a request that are not in its object: merged pods of TrainJobs, and pods that controllers build
from single fields.

A policy with `expand: pods` is evaluated on the pods that Trainer creates from a TrainJob and its runtime. A problem of
a field is reported at the origin of the field: spec.trainer, the patches, or the runtime. Without the runtime, the pods
are unknown. Some controllers build pods from single fields of an object. A policy is evaluated on these fields. A
policy that reads another field is reported as not evaluated, because reading an unknown field of a PartialObject raises
NoDecision. Only pods of objects in files are evaluated in this way, because in a cluster the created pods themselves
are reviewed. A pod template that a controller completes is also a PartialObject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, POD, Attributes
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.deadline import Deadline
from webhook.errors import NoDecision
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods.unread_pods import unread_pods
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject
from webhook.schema import decode_object
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.sent import pod_as_sent
from webhook.workloads.embedded import embedded_objects
from webhook.workloads.made_pods import MadePod, PartialTemplate, made_pods
from webhook.workloads.podsets import PodSet, group_kind
from webhook.workloads.table import Table

if TYPE_CHECKING:
    from webhook.facts.train_job_pods.virtual_pods import VirtualPod


class MergedPod(Struct, frozen=True, kw_only=True):
    """The pod of one replicated job of a TrainJob. `path` is the place of the TrainJob in the request's object; ()
    means the object itself.
    """

    path: FieldPath
    virtual: VirtualPod

    @property
    def name(self) -> str:
        """Return the name of the pod set."""
        return self.virtual.name

    @property
    def podset(self) -> PodSet:
        """Return the pod set. Its place is the field of the TrainJob that names the runtime."""
        job = self.virtual.replicated_job
        return PodSet(
            name=self.virtual.name,
            path=(*self.path, "spec", "runtimeRef"),
            template=job.pod_template.json,
            count=job.replicas * job.parallelism,
            elsewhere=True,
        )

    def locate(self, path: FieldPath, message: str) -> tuple[str, str]:
        """Return the place from which a field of the pod comes, and the message with this place."""
        at = self.virtual.path_in_trainer_spec(path) if path else None
        if at is not None:
            place = path_as_text((*self.path, *at))
            return place, f"{place}{message}"
        runtime = self.virtual.job.runtime
        templates = {job.name: job.pod_template.json for job in runtime.replicated_jobs}
        template = templates.get(self.virtual.name)
        is_own = template is not None and get(template, path) == get(self.podset.template, path)
        origin = self.virtual.job.path_for_runtime_problem(is_own=is_own)
        place = f"{path_as_text(self.path)}.{origin}" if self.path else origin
        place_in_pod = f"{path_as_text(path)}{message}" if path else message
        return (
            place,
            f"{place}: in replicated job `{self.virtual.name}` of {runtime}{', ' if path else ': '}{place_in_pod}",
        )


class PartialPod(Struct, frozen=True, kw_only=True):
    """A pod that a controller creates from single fields of an object of kind `kind`. `path` is the path of this object
    in the request's object.
    """

    path: FieldPath
    kind: str
    made_pod: MadePod

    @property
    def name(self) -> str:
        return self.made_pod.name

    @property
    def podset(self) -> PodSet:
        """Return the pod set, with the place of the fields."""
        return PodSet(
            name=self.made_pod.name, path=(*self.path, *self.made_pod.at), template=self.made_pod.pod, elsewhere=True
        )

    def locate(self, path: FieldPath, message: str) -> tuple[str, str]:
        """Return the place from which a field of the pod comes, and the message with this place."""
        place = path_as_text((*self.path, *self.made_pod.locate(path)))
        return place, f"{place}{message}" if path else f"{place}: {message}"

    def pod(self, attributes: Attributes, deadline: Deadline) -> JSON:
        """Return the known part of the pod, as an API server would send it."""
        made_pod = self.made_pod
        error_text = f"`{{}}` of the pods of {self.kind} is not known, because their controller sets it"
        whole = with_api_defaults(
            pod_as_sent(_decoded_pod(made_pod.pod, attributes, deadline), deadline), POD, deadline
        )
        spec = whole["spec"]
        containers = [
            PartialObject(
                {name: each[name] for name in each if name in made_pod.known_in_container}
                | _partial_resources(each, made_pod, error_text, f"spec.containers[{index}]."),
                made_pod.known_in_container.__contains__,
                f"spec.containers[{index}].",
                error_text,
            )
            for index, each in enumerate(spec["containers"])
        ]
        known_spec = {name: spec[name] for name in spec if name in made_pod.known_in_spec}
        partial = PartialObject(
            {**known_spec, "containers": containers}, made_pod.known_in_spec.__contains__, "spec.", error_text
        )
        return {**whole, "spec": partial}


def _partial_resources(container: JSON, made_pod: MadePod, error_text: str, path_of_container: str) -> JSON:
    """Return `resources` of a container with its unknown parts; {} if there are no unknown parts."""
    if not made_pod.hidden_limits or "resources" not in made_pod.known_in_container:
        return {}
    resources = container.get("resources") or {}

    def is_known(name: str) -> bool:
        return name not in made_pod.hidden_limits

    sides = {
        side: PartialObject(resources.get(side) or {}, is_known, f"{path_of_container}resources.{side}.", error_text)
        for side in ("limits", "requests")
    }
    return {"resources": {**resources, **sides}}


def _decoded_pod(template: JSON, attributes: Attributes, deadline: Deadline) -> JSON:
    metadata = {**template["metadata"], **({"namespace": attributes.namespace} if attributes.namespace else {})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return decode_object(pod, POD, deadline).value


def pod_of_partial_template(pod: JSON, partial: PartialTemplate, deadline: Deadline) -> JSON:
    """Return the known part of the pods of a template that a controller completes.

    Args:
        pod: the template as a decoded Pod, or None.
        partial: the parts that the controller does not change.
        deadline: is charged for each value that is walked.
    """
    if pod is None:
        return None
    if partial.is_unknown:
        return _KnownParts(deadline, "").of({})
    sent = pod_as_sent(pod, deadline, is_whole=False)
    metadata, spec = dict(sent["metadata"]), dict(sent["spec"])
    for body, name, more in (
        (metadata, "labels", partial.labels),
        (metadata, "annotations", partial.annotations),
        (spec, "nodeSelector", partial.node_selector),
    ):
        if more:
            body[name] = {**body.get(name, {}), **more}
    containers = spec.get("containers") if "containers" in partial.whole_lists else None
    fields = {name: each for name, each in spec.items() if name not in partial.hidden_in_pod and name != "containers"}
    known_spec = _KnownParts(deadline, "spec.", whole_lists=partial.whole_lists, absent=partial.absent).of(fields)
    if containers:
        main = partial.index_of_main_container(containers)
        parts = [
            _KnownParts(deadline, f"spec.containers[{index}].", hidden=partial.hidden if index == main else frozenset())
            for index in range(len(containers))
        ]
        known_spec = known_spec.with_field(
            "containers", [part.of(each) for part, each in zip(parts, containers, strict=True)]
        )
    return _KnownParts(deadline, "").of({**sent, "metadata": metadata}).with_field("spec", known_spec)


class _KnownParts(Struct, frozen=True):
    """Makes the PartialObject of an object in a template. `where` is the path of the object in the Pod, with a dot at
    the end.

    `hidden` has dotted paths of unknown fields. `whole_lists` has the lists that are known; no other list is known.
    `absent` has fields that are certainly not set.
    """

    deadline: Deadline
    where: str
    hidden: frozenset[str] = frozenset()
    whole_lists: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()

    def of(self, value: JSON, at: str = "") -> PartialObject:
        """Return an object whose hidden fields and lists are unknown. `at` is its dotted path below `where`."""
        fields: dict[str, JSON] = {}
        for name, each in self.deadline.charge_for_items(value.items()):
            if at + name in self.hidden:
                continue
            if isinstance(each, dict):
                fields[name] = self.of(each, f"{at}{name}.")
            elif not isinstance(each, list) or at + name in self.whole_lists:
                fields[name] = each
        error_text = "`{}` of these pods is not known, because their controller completes the template"
        is_known = self.absent.__contains__ if not at else lambda _: False
        return PartialObject(fields, is_known, f"{self.where}{at}", error_text)


class PodsOutsideObject(Struct, frozen=True):
    """The pods outside of a request's object, and the pods outside of its old object (`before`). Without the `missing`
    objects, some pods are unknown.
    """

    pods: tuple[MergedPod | PartialPod, ...] = ()
    before: tuple[MergedPod | PartialPod, ...] = ()
    missing: tuple[MissingObject, ...] = ()


def pods_outside_object(attributes: Attributes, table: Table, view: ClusterView) -> PodsOutsideObject:
    """Return the pods of a request's object that are not in the object. The attributes must have decoded objects.

    Raises:
        LookupFailed: the installed release of Trainer is unknown.
    """
    now, before = attributes.object, attributes.old_object
    jobs = [*_train_jobs(now if now is not None else before, table, view)]
    obj = now if now is not None else before
    pods: list[MergedPod | PartialPod] = []
    missing: list[MissingObject] = []
    if attributes.is_plain:
        pods += _partial_pods(obj, table, view.deadline)
        kinds_read = {pod.kind for pod in pods if isinstance(pod, PartialPod)}
        missing += (each for each in unread_pods(obj, table, view.deadline) if each.kind not in kinds_read)
    if not (jobs or pods):
        return PodsOutsideObject(missing=tuple(missing))
    if jobs:
        from webhook.facts.train_job_pods.merged_train_job import merge_train_job_for_pods
        from webhook.facts.train_job_pods.virtual_pods import virtual_pods
    for path, obj in jobs:
        subject = Subject(object=obj, old_object=None, attributes=attributes, cluster=view, table=table)
        missing += subject.once(merge_train_job_for_pods).missing
        pods += (MergedPod(path=path, virtual=each) for each in subject.once(virtual_pods))
    old = (
        pods_outside_object(replace(attributes, object=before, old_object=None), table, view).pods
        if now and before
        else ()
    )
    return PodsOutsideObject(tuple(pods), old, tuple(dict.fromkeys(missing)))


def _partial_pods(obj: JSON, table: Table, deadline: Deadline) -> Iterator[PartialPod]:
    """Yield the pods that controllers create from single fields of an object, or of objects inside it."""
    inside = embedded_objects(obj, table, deadline)
    places = [((), obj), *((embedded.path, embedded.object) for embedded in deadline.items_with_clock_checks(inside))]
    for path, each in places:
        row = table.row(*group_kind(each))
        if row is not None:
            for pod in made_pods(each, row, deadline) or ():
                yield PartialPod(path=path, kind=row.kind, made_pod=pod)


def _train_jobs(obj: JSON, table: Table, view: ClusterView) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield the TrainJobs in an object with their paths. A TrainJob yields itself."""
    if group_kind(obj) == TRAIN_JOB:
        yield (), obj
    for embedded in view.deadline.items_with_clock_checks(embedded_objects(obj, table, view.deadline)):
        if group_kind(embedded.object) == TRAIN_JOB:
            yield embedded.path, decode_object(embedded.object, embedded.row.gvk, view.deadline).value


class PartialObject(dict[str, Any]):
    """A JSON object with some unknown fields.

    Args:
        fields: the fields that are set and known.
        is_known: returns whether a field that is not in `fields` is known to be absent.
        where: the path of the object, with a dot at its end.
        error_text: the text for an unknown field, with `{}` for its path.
    """

    def __init__(self, fields: JSON, is_known: Callable[[str], bool], where: str, error_text: str) -> None:
        super().__init__(fields)
        self._is_known = is_known
        self._where = where
        self._error_text = error_text

    def with_field(self, name: str, value: JSON) -> PartialObject:
        """Return a copy with another value of a field."""
        fields = {**dict(dict.items(self)), name: value}
        return PartialObject(fields, self._is_known, self._where, self._error_text)

    def _refuse(self, name: str) -> NoReturn:
        raise NoDecision(self._error_text.format(f"{self._where}{name}"))

    def __missing__(self, name: str) -> NoReturn:
        if not self._is_known(name):
            self._refuse(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Return whether a field is set.

        Raises:
            NoDecision: the field is unknown.
        """
        if super().__contains__(name):
            return True
        return isinstance(name, str) and not self._is_known(name) and self._refuse(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or the default if it is known to be absent."""
        is_set = name in self
        return self[name] if is_set else default

    def _refuse_whole(self, *_: object) -> NoReturn:
        self._refuse("*")

    def __iter__(self) -> Iterator[str]:
        self._refuse_whole()

    def __bool__(self) -> bool:
        return bool(dict.__len__(self)) or self._refuse("*")

    __len__ = keys = values = items = copy = __eq__ = __ne__ = __or__ = _refuse_whole
    __hash__ = None
