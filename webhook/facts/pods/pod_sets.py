"""The pod sets of an object, and the fact `podSets`: pod templates, numbers of pods, and the effect of an update.

The workload table has the paths of the templates in an object. A TrainJob has no templates, even if the TrainJob is
inside another object. The pods of a TrainJob come from its runtime, merged with the TrainJob; the runtime may be
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, parse_path, path_as_text
from webhook.cel.types import BOOL, DYN, INT, STRING, list_of
from webhook.cluster.interest import interest_in_fields
from webhook.facts.fact import FactResult, Missing, declare_structure
from webhook.facts.kinds import POD, TRAIN_JOB
from webhook.facts.subject import Fact, Subject
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.caches import IdentityKey
from webhook.typed.collections import Items
from webhook.typed.pods import Pod, PodTemplate
from webhook.typed.serving import ClusterServingRuntime, Model, ServingRuntime
from webhook.typed.view import ReadingContext
from webhook.workloads import podsets
from webhook.workloads.embedded import embedded_objects, holds_objects
from webhook.workloads.podsets import PodSet, group_kind, pod_templates
from webhook.workloads.table import Table

_APPS: Final = "apps"
"""The group of the kinds with pods that need labels, such as Deployment."""
_SELECTOR: Final[FieldPath] = ("spec", "selector")
_RUNTIME: Final[FieldPath] = ("spec", "runtimeRef")
POD_SET: Final = declare_structure(
    "PodSet",
    name=(STRING, "name of the pod set in the workload table"),
    path=(STRING, "the path of the template; for a TrainJob, `spec.runtimeRef`"),
    template=(DYN, "`{metadata, spec}` of the template"),
    count=(DYN, "pods of one group; null if not known"),
    groups=(INT, "number of groups that the object makes"),
    pods=(DYN, "count times groups; null if not known"),
    change=(
        STRING,
        (
            "the effect of a changed PodSpec: `mutable` (the controller applies the change), `later` (running pods "
            "stay unchanged) or `immutable` (refused). A suspended object that can be changed is `mutable`"
        ),
    ),
    changed=(BOOL, "whether the update changes the PodSpec"),
)
RUNTIME_LOOKUPS: Final = tuple(
    interest_in_fields(kind.gvk, "spec.annotations", "spec.containers", "spec.supportedModelFormats", "spec.workerSpec")
    for kind in (ServingRuntime, ClusterServingRuntime)
)
"""The look-ups of `runtime_of_model`."""


class PodSets(Struct, frozen=True):
    """Pod sets, and the missing runtimes that may add more pod sets."""

    all: Items[PodSet]
    missing: tuple[MissingObject, ...] = ()

    def build_fact_result(self, value: Mapping[str, JSON], *others: str, missing: Missing) -> FactResult:
        """Return a fact with the fields of `value`. All fields except `others` depend on the pod sets. `missing` are
        the objects that other lookups did not find, by field.
        """
        if not self.missing:
            return FactResult(value, missing)
        own = {name: self.missing for name in value if name not in others}
        return FactResult(value, {name: (*own.get(name, ()), *missing.get(name, ())) for name in (*own, *missing)})


def pod_sets(subject: Subject) -> PodSets:
    """Return the pod sets of an object; call it through `Subject.once`."""
    if subject.group_kind == POD:  # a Pod contains no other pods
        return PodSets(Items(pod_templates(subject.object, subject.table, subject.deadline), subject.deadline))
    if group_kind(subject.object) == TRAIN_JOB:
        return _pod_sets_of_train_job(subject)
    own = list_pod_sets(subject.object, subject.table, subject.cluster)
    if not holds_objects(subject.object, subject.table):
        return PodSets(Items(own, subject.deadline))
    inside = [*_pod_sets_of_inner_train_jobs(subject)]
    listed_sets = (*own, *(podset for made in inside for podset in made.all))
    missing = dict.fromkeys(missing for made in inside for missing in made.missing)
    return PodSets(Items(listed_sets, subject.deadline), tuple(missing))


def is_part_of_template(template: PodTemplate, subject: Subject) -> bool:
    """Return whether a file has only a part of a pod template, as a patch of a workload does. Another file, or a
    controller, may have the rest, so a field that the template lacks is not known to be missing.

    A part has no container, or a container without the field `image`. In the group apps, a template without labels is a
    part as well, because no selector selects its pods. But if the workload has a selector, only the labels are missing.
    From a virtual Pod, the selector of the workload is not known. An API server sends only whole workloads.
    """
    group = subject.group_kind[0] if subject.template_of is None else subject.template_of.group
    may_lack_labels = group != _APPS or paths.get(subject.object, _SELECTOR) is not None
    return template.spec.is_part or not (template.metadata.labels or may_lack_labels)


def template_of(podset: PodSet, subject: Subject) -> PodTemplate:
    """Return the template of a pod set with typed fields, read once a request; paths are relative to the template."""
    template = podset.template
    if template is subject.object:
        return subject.typed(Pod)
    return subject.cluster.once(
        (PodTemplate, IdentityKey(template)), lambda: PodTemplate.of(template, (), ReadingContext(subject.deadline))
    )


def pod_set_located_in_runtime(podset: PodSet) -> PodSet:
    """Return a pod set of a runtime with a path in the TrainJob: `spec.runtimeRef.JOB`. Return other pod sets
    unchanged.
    """
    return replace(podset, path=(*podset.path, podset.name), elsewhere=False) if podset.elsewhere else podset


def relocate_problem_to_train_job(problem: Problem, subject: Subject) -> Problem:
    """Return a problem of a pod set from a merged runtime as a problem of the TrainJob; return other problems
    unchanged.
    """
    at = parse_path(problem.path) if subject.group_kind == TRAIN_JOB else ()
    if at[:2] != _RUNTIME or len(at) < 3:
        return problem
    from webhook.facts.train_job_pods.merged_train_job import merge_train_job_for_pods
    from webhook.facts.train_job_pods.virtual_pods import virtual_pods_by_name

    name, inside = str(at[2]), at[3:]
    if (path := subject.once(virtual_pods_by_name)[name].path_in_trainer_spec(inside)) is not None:
        return replace(problem, path=path_as_text(path))
    where = f"{path_as_text(inside)} " if inside else ""
    runtime = subject.once(merge_train_job_for_pods).runtime
    assumed = f" of {runtime}" if runtime.assumed else ""
    message = f"in replicated job `{name}`{assumed}, {where}{problem.found_and_message}"
    return replace(problem, path=path_as_text(_RUNTIME), found="", message=message)


def list_pod_sets(obj: JSON, table: Table, view: ClusterView) -> tuple[PodSet, ...]:
    """Return the pod templates of an object, listed once a request."""
    return view.once((list_pod_sets, IdentityKey(obj)), lambda: pod_templates(obj, table, view.deadline))


def _pod_sets_of_train_job(subject: Subject) -> PodSets:
    from webhook.facts.train_job_pods.merged_train_job import (
        merge_train_job_for_pods,
        runtime_podsets,
    )  # for TrainJobs alone

    job = subject.once(merge_train_job_for_pods)
    return PodSets(Items(runtime_podsets(job), subject.deadline), job.missing)


def _pod_sets_of_inner_train_jobs(subject: Subject) -> Iterator[PodSets]:
    """Yield the pod sets of the TrainJobs inside an object. `groups` is multiplied by the number of TrainJobs that run
    at the same time.
    """
    for place in subject.deadline.items_with_clock_checks(
        embedded_objects(subject.object, subject.table, subject.deadline)
    ):
        if group_kind(place.object) == TRAIN_JOB:
            made = _pod_sets_of_train_job(subject.subject_of_inner_object(place.object))
            located = [
                replace(podset, path=place.path + podset.path, groups=podset.groups * place.groups)
                for podset in made.all
            ]
            yield PodSets(made.all.of(located), made.missing)


def _compute_pods_fact(subject: Subject) -> FactResult:
    listed = subject.once(pod_sets)
    counted = listed.all
    if subject.pods != 1:
        counted = counted.of([replace(podset, count=subject.pods) for podset in listed.all])
    return FactResult(_pod_sets_as_json(subject, counted), {"": listed.missing} if listed.missing else {})


def _pod_sets_as_json(subject: Subject, listed: Items[PodSet]) -> list[JSON]:
    obj, old = subject.object, subject.attributes.old_object
    becomes = podsets.change_of_template(obj, old, subject.table)
    before = {podset.name: podset for podset in pod_templates(old, subject.table, subject.deadline)}
    return [
        {
            "name": podset.name,
            "path": paths.path_as_text(podset.path),
            "template": podset.template,
            "count": podset.count,
            "groups": podset.groups,
            "pods": podset.pods,
            "change": becomes,
            "changed": podsets.is_template_changed(podset, before.get(podset.name)),
        }
        for podset in listed
    ]


FACTS: Final = (
    Fact(
        name="podSets",
        about=(
            "Every pod template of the object in the workload table. The templates of a TrainJob come from its merged "
            "runtime."
        ),
        examples=(
            "podSets.all(p, p.pods == null || p.pods <= 64)",
            'podSets.all(p, !p.changed || p.change != "later")',
        ),
        type=list_of(POD_SET.type),
        structures=(POD_SET,),
        compute=_compute_pods_fact,
        lookups=RUNTIMES,
        expanded={"": "a list with the template of the virtual Pod"},
    ),
)


def runtime_of_model(model: Model, view: ClusterView) -> tuple[ServingRuntime | None, bool]:
    """Return the runtime that KServe merges with the model of an InferenceService, and whether the model names it. The
    runtime is None if it is not known. Without a name, the one known runtime that selects the format is the runtime.
    """
    if name := model.runtime:
        runtime = view.get_without_noting(ServingRuntime.gvk, view.namespace, name) or view.get_without_noting(
            ClusterServingRuntime.gvk, "", name
        )
        return (ServingRuntime.of(runtime, (), ReadingContext(view.deadline)) if runtime else None), True
    listed = (*view.typed_here(ServingRuntime), *view.typed_here(ClusterServingRuntime))
    fitting = [each for each in listed if each.selects_format(model.model_format.name)]
    return (fitting[0] if len(fitting) == 1 else None), False
