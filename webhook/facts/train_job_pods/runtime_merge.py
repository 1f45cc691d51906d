"""A TrainJob merged with its runtime, as each release of Kubeflow Trainer does it.

Patches (overlays.py) are merged by 2.2 and older into the jobs of their names, by 2.3 into the whole JobSet, so that an
unknown name is appended; before that Trainer's webhook refuses it. The jobs keep the order of the runtime. What comes
of spec.trainer and the plugins is job_set_builder.py's. Sources: kubeflow/trainer@8c0f5059bd51
pkg/runtime/core/trainingruntime.go mergeRuntimePatches; branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.train_job_pods.job_set_builder import build
from webhook.facts.train_job_pods.merged_job_set import MergedJobSet
from webhook.facts.train_job_pods.overlays import POD, Layer, Overlay, layers
from webhook.facts.train_job_pods.releases import WHOLE_JOBSET
from webhook.facts.train_job_pods.runtime_reference import Runtime
from webhook.patch import strategic
from webhook.paths import get
from webhook.problem import Problem
from webhook.releases import Release, shown
from webhook.wording import either

problem: Final = Group("train-job").problem
_STEPS: Final = ("trainer", "dataset-initializer", "model-initializer")
_PER_NODE: Final = "spec.trainer.resourcesPerNode"


def merge(job: JSON, runtime: Runtime, release: Release, deadline: Deadline | None = None) -> MergedJobSet:
    """The JobSet of a TrainJob on a runtime."""
    template = runtime.spec.get("template", {})
    merged = MergedJobSet(spec=template.get("spec", {}))
    merged.describe(template.get("metadata", {}), "spec.runtimeRef")
    until, indexes = deadline or Deadline(), strategic.Indexes()
    for layer in until.paced(layers(job, release)):
        merged.describe(layer.metadata, layer.metadata_at)
        _lay(merged, layer, runtime, release, until, indexes=indexes)
    merged.patched = merged.spec = _in_order(merged.spec, template.get("spec", {}))
    build(merged, job, runtime, release)
    return merged


def _in_order(spec: JSON, own: JSON) -> JSON:
    """The replicated jobs as the runtime has them in order; those that it does not have come with the first."""
    order = {each.get("name", ""): place for place, each in enumerate(own.get("replicatedJobs", []))}
    jobs = spec.get("replicatedJobs", [])
    return (
        {**spec, "replicatedJobs": sorted(jobs, key=lambda each: order.get(each.get("name", ""), 0))} if jobs else spec
    )


def _lay(
    merged: MergedJobSet,
    layer: Layer,
    runtime: Runtime,
    release: Release,
    deadline: Deadline,
    *,
    indexes: strategic.Indexes,
) -> None:
    """Merge one patch; one that cannot be merged is told and left out."""
    jobs = merged.spec.get("replicatedJobs", [])
    deadline.spend(len(jobs) // 10)
    known = {each.get("name", ""): each for each in jobs}
    for overlay in deadline.paced(layer.overlays):
        before = known.get(overlay.name)
        if before is None:
            merged.unknown.add((overlay.name, ""))
            merged.problems.append(_unknown_job(overlay, known, runtime, release))
        else:
            merged.problems.extend(_unknown_containers(merged, overlay, before, runtime))
            merged.problems.extend(_lost_tolerations(overlay, before))
    taken = [each.job for each in layer.overlays if release >= WHOLE_JOBSET or each.name in known]
    if not taken:
        return
    try:
        merged.spec = strategic.merge(merged.spec, {"replicatedJobs": taken}, "JobSetSpec", deadline, indexes)
    except strategic.Unmergeable as error:
        where = f"in replicated job `{layer.overlays[0].name}`, " if len(layer.overlays) == 1 else ""
        message = f"cannot be merged into {runtime} because {where}{error}"
        merged.problems.append(problem("patch-merges", layer.at, message, error.fix))


def _unknown_job(overlay: Overlay, known: Mapping[str, JSON], runtime: Runtime, release: Release) -> Problem:
    """kubeflow/trainer#3948: the webhook of 2.3 looks at the merged job, which has the unknown one by then."""
    does = "refuses a patch of an unknown job"
    if release >= WHOLE_JOBSET:
        does = "adds a job of this name without containers, which JobSet refuses"
    message = f"is not a replicated job of {runtime}, and Trainer {shown(release)} {does}"
    fix = f"write {either(f'`{name}`' for name in known)}" if known else "remove the patch"
    return problem("patched-job", f"{overlay.at}.name", message, fix, overlay.name)


def _unknown_containers(merged: MergedJobSet, overlay: Overlay, before: JSON, runtime: Runtime) -> Iterator[Problem]:
    for kind in ("containers", "initContainers"):
        there = {get(each, ("name",), "") for each in get(before, (*POD, kind), [])}
        for index, container in enumerate(overlay.pod.get(kind, [])):
            name = get(container, ("name",), "")
            if name and name not in there:
                merged.unknown.add((overlay.name, name))
                where = f"{overlay.spec_at}.{kind}[{index}].name"
                what = "a container" if kind == "containers" else "an init container"
                message = (
                    f"is not {what} of replicated job `{overlay.name}` of {runtime}, so Trainer adds a new container "
                )
                yield problem(
                    "patched-container",
                    where,
                    f"{message}without an image",
                    "write the name of a container that is there",
                    name,
                )


def _lost_tolerations(overlay: Overlay, before: JSON) -> Iterator[Problem]:
    """Tolerations have no merge key: a patch with any replaces all of the runtime's."""
    own = overlay.pod.get("tolerations")
    if own is None:
        return
    kept = {each.get("key", "") for each in own}
    for lost in get(before, (*POD, "tolerations"), []):
        key = get(lost, ("key",), "")
        if key not in kept and "" not in kept:
            of = f"for `{key}`" if key else "for every key"
            message = f"replaces the whole list, so the runtime's toleration {of} is lost"
            fix = "add that toleration to the patch too, if the pods need it"
            yield problem("lost-toleration", f"{overlay.spec_at}.tolerations", message, fix)
