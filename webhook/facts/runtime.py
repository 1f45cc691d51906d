"""A TrainJob merged with its runtime, as each release of Kubeflow Trainer does it.

Four shapes share the API version: 2.0 podSpecOverrides and 2.1 podTemplateOverrides, both of named jobs; 2.2 and later
runtimePatches, which 2.2 merges into the jobs of that name and 2.3 into the whole JobSet, so that an unknown name is
appended. Then spec.trainer is laid over the jobs that carry the label of the trainer step. Sources:
kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go (mergeRuntimePatches, applyRes) and
pkg/runtime/framework/plugins/jobset/builder.go; branches release-2.0 to release-2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.attributes import JSON
from webhook.facts.containers import items, names, text
from webhook.patch import strategic
from webhook.paths import get, render

STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
MANY_PATCHES = (2, 2)  # runtimePatches instead of podTemplateOverrides
WHOLE_JOBSET = (2, 3)  # patches merge into the JobSet, resources merge per key
KEEPS_CLAIMS = (2, 4)  # resourcesPerNode leaves a container's claims alone (kubeflow/trainer#4027)


@dataclass(slots=True)
class Merged:
    """The JobSet spec that Trainer would create, and what became of the TrainJob's own words.

    notes: what was ignored, dropped, appended or replaced, each `{what, path, text, job, container}`.
    """

    spec: JSON
    notes: list[JSON] = field(default_factory=list)

    def note(self, what: str, path: str, words: str, *, job: str = "", container: str = "") -> None:
        """Remember one thing that did not go as written."""
        self.notes.append({"what": what, "path": path, "text": words, "job": job, "container": container})


def merge(job: JSON, runtime: JSON, version: tuple[int, int]) -> Merged:
    """The JobSet of a TrainJob on a runtime; `runtime` is the runtime object's `spec`."""
    merged = Merged(spec=get(runtime, ("template", "spec")) or {})
    for overlays in _patches(job, version):
        known = {text(each.get("name")): each for each in _jobs(merged.spec)}
        for overlay in overlays:
            _note_overlay(merged, overlay, known, version)
        taken = [each.job for each in overlays if version >= WHOLE_JOBSET or each.name in known]
        merged.spec = strategic.merge(merged.spec, {"replicatedJobs": taken}, "JobSetSpec")
    _apply_trainer(merged, job, runtime, version)
    return merged


@dataclass(frozen=True, slots=True)
class _Overlay:
    """What a TrainJob lays over one replicated job: a partial job, where it stands, and where its PodSpec stands."""

    job: JSON
    at: str
    spec_at: str

    @property
    def name(self) -> str:
        return text(self.job.get("name"))

    @property
    def pod(self) -> JSON:
        return get(self.job, _POD) or {}


def _jobs(spec: JSON) -> list[JSON]:
    return [each for each in items(get(spec, ("replicatedJobs",))) if isinstance(each, dict)]


def _patches(job: JSON, version: tuple[int, int]) -> Iterator[list[_Overlay]]:
    """The overlays of each patch that this release reads, in order."""
    if version >= MANY_PATCHES:
        for index, patch in enumerate(items(get(job, ("spec", "runtimePatches")))):
            at = f"spec.runtimePatches[{index}].trainingRuntimeSpec.template.spec.replicatedJobs"
            listed = items(get(patch, ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")))
            yield [
                _Overlay(each, f"{at}[{place}]", f"{at}[{place}].{_POD_AT}")
                for place, each in enumerate(listed)
                if isinstance(each, dict)
            ]
        return
    name = "podTemplateOverrides" if version >= (2, 1) else "podSpecOverrides"
    for index, override in enumerate(items(get(job, ("spec", name)))):
        if isinstance(override, dict):
            yield list(_override(override, f"spec.{name}[{index}]", version))


def _override(override: JSON, at: str, version: tuple[int, int]) -> Iterator[_Overlay]:
    """One override of 2.0 or 2.1 as an overlay of each of its target jobs."""
    inner = {key: value for key, value in override.items() if key != "targetJobs"}
    template, spec_at = (inner, f"{at}.spec") if version >= (2, 1) else ({"spec": inner}, at)
    for index, target in enumerate(items(override.get("targetJobs"))):
        job = {"name": text(get(target, ("name",))), "template": {"spec": {"template": template}}}
        yield _Overlay(job, f"{at}.targetJobs[{index}]", spec_at)


_POD = ("template", "spec", "template", "spec")
_POD_AT = render(_POD)


def _note_overlay(merged: Merged, overlay: _Overlay, known: Mapping[str, JSON], version: tuple[int, int]) -> None:
    """Jobs and containers that an overlay names and the JobSet has not, and tolerations that it replaces."""
    before = known.get(overlay.name)
    if before is None:
        appended = version >= WHOLE_JOBSET
        words = "is appended without containers" if appended else "is ignored"
        merged.note("unknownJob" if appended else "ignoredJob", overlay.at, words, job=overlay.name)
        return
    pod = get(before, _POD) or {}
    for kind in ("containers", "initContainers"):
        names = {get(each, ("name",)) for each in items(pod.get(kind))}
        for index, container in enumerate(items(overlay.pod.get(kind))):
            name = text(get(container, ("name",)))
            if name not in names:
                where = f"{overlay.spec_at}.{kind}[{index}]"
                merged.note("unknownContainer", where, "is appended without an image", job=overlay.name, container=name)
    _note_tolerations(merged, overlay, pod)


def _note_tolerations(merged: Merged, overlay: _Overlay, pod: JSON) -> None:
    """Tolerations have no merge key: a patch with any replaces all of the runtime's."""
    own = overlay.pod.get("tolerations")
    if not isinstance(own, list):
        return
    kept = {text(each.get("key")) for each in own if isinstance(each, dict)}
    for lost in items(pod.get("tolerations")):
        key = text(get(lost, ("key",)))
        if isinstance(lost, dict) and key not in kept and "" not in kept:
            merged.note("lostToleration", f"{overlay.spec_at}.tolerations", key or "every key", job=overlay.name)


def _apply_trainer(merged: Merged, job: JSON, runtime: JSON, version: tuple[int, int]) -> None:
    """Lay spec.trainer over the trainer's job, and the number of nodes over the jobs that are nodes."""
    trainer = get(job, ("spec", "trainer"))
    policy = get(runtime, ("mlPolicy",))
    jobs = [_with_trainer(merged, each, trainer, policy, version) for each in _jobs(merged.spec)]
    jobs = [_with_nodes(each, node_count(job, runtime), policy) for each in jobs]
    merged.spec = {**merged.spec, "replicatedJobs": jobs} if jobs else merged.spec


def is_trainer(job: JSON) -> bool:
    """Whether a replicated job carries the trainer step's label."""
    return bool(get(job, ("template", "metadata", "labels", STEP_LABEL)) == "trainer")


def node_count(job: JSON, runtime: JSON) -> int:
    """The number of nodes: the TrainJob's, else the runtime's, else one."""
    for found in (get(job, ("spec", "trainer", "numNodes")), get(runtime, ("mlPolicy", "numNodes"))):
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return 1


def _launcher_is_node(policy: JSON) -> bool:
    return bool(get(policy, ("mpi", "runLauncherAsNode")) is True)


def _with_nodes(job: JSON, nodes: int, policy: JSON) -> JSON:
    """A replicated job with as many pods as there are nodes, where it is the one that nodes are pods of."""
    if get(policy, ("mpi",)) is not None:
        if job.get("name") != "node":
            return job
        nodes = max(nodes - 1, 1) if _launcher_is_node(policy) else nodes
    elif not is_trainer(job):
        return job
    template = job.get("template") or {}
    spec = {**(template.get("spec") or {}), "parallelism": nodes, "completions": nodes}
    return {**job, "template": {**template, "spec": spec}}


def _with_trainer(merged: Merged, job: JSON, trainer: JSON, policy: JSON, version: tuple[int, int]) -> JSON:
    if not isinstance(trainer, dict):
        return job
    is_step = is_trainer(job)
    mpi_node = _launcher_is_node(policy) and job.get("name") == "node"
    if not is_step and not mpi_node:
        return job
    takes_resources = mpi_node or (is_step and (policy is not None or version < WHOLE_JOBSET))
    listed = items(get(job, (*_POD, "containers")))
    changed = [
        _with_node(each, trainer, version, whole=is_step, resources=takes_resources)
        if get(each, ("name",)) == "node"
        else each
        for each in listed
    ]
    if is_step and not takes_resources and trainer.get("resourcesPerNode") is not None:
        words = "the runtime has no mlPolicy, so Trainer leaves resourcesPerNode out"
        merged.note("ignoredResources", "spec.trainer.resourcesPerNode", words, job=text(job.get("name")))
    for before, after in zip(listed, changed, strict=True):
        for claim in _lost_claims(before, after):
            words = "resourcesPerNode rebuilds the container's resources without its claims"
            merged.note("lostClaim", "spec.trainer.resourcesPerNode", words, job=text(job.get("name")), container=claim)
    replaced = _put(job, (*_POD, "containers"), changed) if changed != listed else job
    if is_step and version >= KEEPS_CLAIMS:
        replaced = _with_claims(replaced, items(trainer.get("resourceClaimsPerNode")))
    return {**replaced, "replicas": 1} if is_step else replaced


def _with_claims(job: JSON, claims: list[JSON]) -> JSON:
    """Claims of resourceClaimsPerNode (KEP-2782): each replaces the pod's of that name, and `node` refers to it."""
    claims = [claim for claim in claims if isinstance(claim, dict)]
    if not claims:
        return job
    names = [claim.get("name") for claim in claims]
    pod = get(job, _POD) or {}
    kept = [each for each in items(pod.get("resourceClaims")) if get(each, ("name",)) not in names]
    listed = [_refers(each, names) if get(each, ("name",)) == "node" else each for each in items(pod.get("containers"))]
    return _put(job, _POD, {**pod, "resourceClaims": [*kept, *claims], "containers": listed})


def _refers(container: JSON, names: list[JSON]) -> JSON:
    resources = container.get("resources") or {}
    own = items(resources.get("claims"))
    added = [{"name": name} for name in names if name not in (get(each, ("name",)) for each in own)]
    return {**container, "resources": {**resources, "claims": [*own, *added]}}


def _lost_claims(before: JSON, after: JSON) -> list[str]:
    kept = items(get(after, ("resources", "claims")))
    return [text(get(each, ("name",))) for each in items(get(before, ("resources", "claims"))) if each not in kept]


def _with_node(container: JSON, trainer: JSON, version: tuple[int, int], *, whole: bool, resources: bool) -> JSON:
    """The container `node` with image, command, args, environment and resources of spec.trainer."""
    changed = dict(container)
    if whole:
        changed |= {key: trainer[key] for key in ("image", "command", "args") if trainer.get(key) is not None}
    if env := items(trainer.get("env")):
        changed["env"] = _upserted(items(container.get("env")), env)
    if resources and isinstance(asked := trainer.get("resourcesPerNode"), dict):
        changed["resources"] = _resources(container.get("resources") or {}, asked, version)
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


def _resources(own: Mapping[str, Any], asked: Mapping[str, Any], version: tuple[int, int]) -> JSON:
    """Limits and requests merged per key since 2.3, replaced before; claims kept since 2.4 only."""
    made: dict[str, Any] = {}
    for side in ("limits", "requests"):
        theirs = asked.get(side) or {}
        amounts = {**(own.get(side) or {}), **theirs} if version >= WHOLE_JOBSET else dict(theirs)
        if amounts:
            made[side] = amounts
    if version >= KEEPS_CLAIMS and own.get("claims"):
        made["claims"] = own["claims"]
    return made


def _put(value: JSON, path: tuple[str, ...], new: JSON) -> JSON:
    if not path:
        return new
    return {**value, path[0]: _put(value.get(path[0]) or {}, path[1:], new)}
