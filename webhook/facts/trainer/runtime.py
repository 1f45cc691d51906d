"""A TrainJob merged with its runtime, as each release of Kubeflow Trainer does it.

Patches (overlays.py) are merged by 2.2 and older into the jobs of their names, by 2.3 into the whole JobSet, so that an
unknown name is appended; before that Trainer's webhook refuses it. Then spec.trainer is laid over the jobs that carry
the label of the trainer step, and the pods are counted (nodes.py). Not merged are the variables, volumes and mounts
that plugins add. Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go (mergeRuntimePatches,
applyRes) and pkg/runtime/framework/plugins/jobset/builder.go; branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.errors import PatchError
from webhook.facts.check import Group
from webhook.facts.pods.containers import names
from webhook.facts.trainer.nodes import counted, counts, is_trainer, launcher_is_node, step
from webhook.facts.trainer.overlays import POD, Layer, Overlay, layers
from webhook.facts.trainer.releases import IMAGE_EVERYWHERE, KEEPS_CLAIMS, WHOLE_JOBSET
from webhook.facts.trainer.runtime_reference import Runtime
from webhook.patch import strategic
from webhook.paths import get
from webhook.problem import Problem
from webhook.releases import Release, shown

problem: Final = Group("train-job").problem
_STEPS: Final = ("trainer", "dataset-initializer", "model-initializer")
_PER_NODE: Final = "spec.trainer.resourcesPerNode"


@dataclass(slots=True)
class Merged:
    """The JobSet spec that Trainer would create, its annotations and where they stand, and what became of all words.

    problems: what was refused, dropped, appended or replaced. unknown: replicated jobs and containers of them that
    patches name and the runtime does not have. lost_claims: those that the container `node` no longer refers to.
    """

    spec: JSON
    annotations: dict[str, JSON] = field(default_factory=dict)
    annotated: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    lost_claims: list[str] = field(default_factory=list)

    def annotate(self, annotations: JSON, at: str) -> None:
        """Annotations of the JobSet: later ones win, and where each stands is remembered."""
        self.annotations |= annotations
        self.annotated |= dict.fromkeys(annotations, at)


def merge(job: JSON, runtime: Runtime, release: Release, deadline: Deadline | None = None) -> Merged:
    """The JobSet of a TrainJob on a runtime."""
    template = runtime.spec.get("template", {})
    merged = Merged(spec=template.get("spec", {}))
    merged.annotate(get(template, ("metadata", "annotations"), {}), "spec.runtimeRef")
    until = deadline or Deadline()
    for layer in until.paced(layers(job, release)):
        merged.annotate(layer.metadata.get("annotations", {}), layer.metadata_at)
        _lay(merged, layer, runtime, release, until)
    _apply_trainer(merged, job, runtime, release)
    return merged


def _lay(merged: Merged, layer: Layer, runtime: Runtime, release: Release, deadline: Deadline) -> None:
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
        merged.spec = strategic.merge(merged.spec, {"replicatedJobs": taken}, "JobSetSpec", deadline)
    except PatchError as error:
        message = f"cannot be merged into {runtime} because {error}"
        merged.problems.append(problem("patch-merges", layer.at, message, "correct this entry of the patch"))


def _unknown_job(overlay: Overlay, known: Mapping[str, JSON], runtime: Runtime, release: Release) -> Problem:
    """kubeflow/trainer#3948: the webhook of 2.3 looks at the merged job, which has the unknown one by then."""
    does = "refuses a patch of an unknown job"
    if release >= WHOLE_JOBSET:
        does = "appends another one without containers, which JobSet refuses"
    message = f"must be a replicated job of {runtime} because Trainer {shown(release)} {does}"
    fix = f"name one of {', '.join(f'`{name}`' for name in known)}" if known else "remove the patch"
    return problem("patched-job", f"{overlay.at}.name", message, fix, overlay.name)


def _unknown_containers(merged: Merged, overlay: Overlay, before: JSON, runtime: Runtime) -> Iterator[Problem]:
    for kind in ("containers", "initContainers"):
        there = {get(each, ("name",), "") for each in get(before, (*POD, kind), [])}
        for index, container in enumerate(overlay.pod.get(kind, [])):
            name = get(container, ("name",), "")
            if name and name not in there:
                merged.unknown.add((overlay.name, name))
                where = f"{overlay.spec_at}.{kind}[{index}].name"
                what = "a container" if kind == "containers" else "an init container"
                message = (
                    f"must be {what} of replicated job `{overlay.name}` of {runtime} because another one is appended "
                )
                yield problem("patched-container", where, f"{message}without an image", "correct the name", name)


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
            message = f"replaces the runtime's toleration {of} because a patch replaces all of them"
            yield problem("lost-toleration", f"{overlay.spec_at}.tolerations", message, "repeat it")


def _apply_trainer(merged: Merged, job: JSON, runtime: Runtime, release: Release) -> None:
    """Lay spec.trainer over the trainer's job, and count the pods of all jobs."""
    trainer, policy = get(job, ("spec", "trainer")), runtime.spec.get("mlPolicy")
    jobs = merged.spec.get("replicatedJobs", [])
    if not jobs:
        return
    pods = counts(jobs, get(trainer, ("numNodes",)), policy)
    made = [_with_trainer(merged, each, trainer, runtime, release) for each in jobs]
    merged.spec = {**merged.spec, "replicatedJobs": [counted(*each) for each in zip(made, pods, strict=True)]}


def _with_trainer(merged: Merged, job: JSON, trainer: JSON, runtime: Runtime, version: Release) -> JSON:
    policy = runtime.spec.get("mlPolicy")
    alone = {**job, "replicas": 1} if step(job) in _STEPS else job
    if trainer is None:
        return alone
    is_step = is_trainer(job)
    is_worker = get(policy, ("mpi",)) is not None and job.get("name") == "node"
    mpi_node = is_worker and launcher_is_node(policy)
    if is_worker and not is_step and version >= IMAGE_EVERYWHERE:
        alone = _with_image(alone, trainer)
    if not is_step and not mpi_node:
        return alone
    takes_resources = mpi_node or policy is not None or version < WHOLE_JOBSET
    listed = get(alone, (*POD, "containers"), [])
    changed = [
        _with_node(each, trainer, version, whole=is_step, resources=takes_resources) if _is_node(each) else each
        for each in listed
    ]
    if is_step and not takes_resources and trainer.get("resourcesPerNode") is not None:
        message = f"is ignored by Trainer {shown(version)} because {runtime} has no mlPolicy"
        merged.problems.append(problem("ignored-resources", _PER_NODE, message, "add an mlPolicy to the runtime"))
    for before, after in zip(listed, changed, strict=True):
        for claim in _lost_claims(before, after):
            merged.lost_claims.append(claim)
            merged.problems.append(_lost_claim(claim, runtime, version))
    replaced = _put(alone, (*POD, "containers"), changed) if changed != listed else alone
    if version >= KEEPS_CLAIMS and takes_resources:
        replaced = _with_claims(replaced, trainer.get("resourceClaimsPerNode", []))
    return replaced


def _is_node(container: JSON) -> bool:
    return bool(container.get("name") == "node")


def _with_image(job: JSON, trainer: JSON) -> JSON:
    """The image alone, for the container `node` of an mpi job's workers."""
    if trainer.get("image") is None:
        return job
    listed = get(job, (*POD, "containers"), [])
    return _put(
        job, (*POD, "containers"), [{**each, "image": trainer["image"]} if _is_node(each) else each for each in listed]
    )


def _with_claims(job: JSON, claims: list[JSON]) -> JSON:
    """Claims of resourceClaimsPerNode (KEP-2782): each replaces the pod's of that name, and `node` refers to it."""
    if not claims:
        return job
    named = [claim.get("name") for claim in claims]
    pod = get(job, POD, {})
    kept = [each for each in pod.get("resourceClaims", []) if get(each, ("name",), "") not in named]
    listed = [_refers(each, named) if _is_node(each) else each for each in pod.get("containers", [])]
    return _put(job, POD, {**pod, "resourceClaims": [*kept, *claims], "containers": listed})


def _refers(container: JSON, named: list[JSON]) -> JSON:
    resources = container.get("resources", {})
    own = resources.get("claims", [])
    known = {get(each, ("name",), "") for each in own}
    added = [{"name": name} for name in named if name not in known]
    return {**container, "resources": {**resources, "claims": [*own, *added]}}


def _lost_claims(before: JSON, after: JSON) -> list[str]:
    if before is after:
        return []
    if get(after, ("resources", "claims"), []):  # they are kept all, or none
        return []
    return [get(each, ("name",), "") for each in get(before, ("resources", "claims"), [])]


def _lost_claim(claim: str, runtime: Runtime, release: Release) -> Problem:
    """kubeflow/trainer#4027."""
    message = (
        f"takes claim `{claim}` of {runtime} away from container `node` because Trainer {shown(release)} rebuilds the "
        "resources without claims, so the pods get the devices and no container sees them"
    )
    return problem("lost-claim", _PER_NODE, message, "remove resourcesPerNode")


def _with_node(container: JSON, trainer: JSON, version: Release, *, whole: bool, resources: bool) -> JSON:
    """The container `node` with image, command, args, environment and resources of spec.trainer."""
    changed = dict(container)
    if whole:
        changed |= {key: trainer[key] for key in ("image", "command", "args") if trainer.get(key) is not None}
    if env := trainer.get("env", []):
        changed["env"] = _upserted(container.get("env", []), env)
    if resources and (asked := trainer.get("resourcesPerNode")) is not None:
        changed["resources"] = _resources(container.get("resources", {}), asked, version)
    return changed


def _upserted(before: list[JSON], env: list[JSON]) -> list[JSON]:
    """Variables replaced by name in their place, the others behind them."""
    places = {name: place for place, name in enumerate(names(before))}
    own = names(env)
    if places.keys().isdisjoint(own):
        return [*before, *env]
    made = list(before)
    for name, each in zip(own, env, strict=True):
        if name in places:
            made[places[name]] = each
        else:
            made.append(each)
    return made


def _resources(own: Mapping[str, Any], asked: Mapping[str, Any], version: Release) -> JSON:
    """Limits and requests merged per key since 2.3, replaced before if there are any; claims kept since 2.4 only."""
    sides = ("limits", "requests")
    if version < WHOLE_JOBSET and all(asked.get(side) is None for side in sides):
        return own
    made: dict[str, Any] = {}
    for side in sides:
        theirs = asked.get(side, {})
        amounts = {**own.get(side, {}), **theirs} if version >= WHOLE_JOBSET else theirs
        if amounts:
            made[side] = amounts
    if version >= KEEPS_CLAIMS and own.get("claims"):
        made["claims"] = own["claims"]
    return made


def _put(value: JSON, path: tuple[str, ...], new: JSON) -> JSON:
    if not path:
        return new
    return {**value, path[0]: _put(value.get(path[0], {}), path[1:], new)}
