"""A TrainJob as Kubeflow Trainer will run it, merged with its runtime.

For anything but a TrainJob the fact says so with an empty `runtime.name`. Without the runtime object it tells what the
TrainJob itself carries, and the runtime is missing. Rules of merging: runtime.py; of counting: processes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.dra.pod_claims import dra
from webhook.facts.gpu.resources import devices_of, trainer_count
from webhook.facts.jobset import name_length
from webhook.facts.jobset.validation import findings
from webhook.facts.pods.containers import containers, items, mapping, text
from webhook.facts.scheduling.priority_classes import named
from webhook.facts.shaped import shaped
from webhook.facts.trainer import overlays, steps, torchtune
from webhook.facts.trainer.lookups import CLUSTER_RUNTIME, GROUP, RUNTIME
from webhook.facts.trainer.nodes import is_trainer, node_count, parallelism
from webhook.facts.trainer.processes import Processes, plugin, predict
from webhook.facts.trainer.releases import KEEPS_CLAIMS, minor
from webhook.facts.trainer.runtime import Merged, merge
from webhook.facts.view import View
from webhook.paths import get
from webhook.releases import Release, shown
from webhook.workloads.podsets import PodSet, group_kind

_DEPRECATED = "trainer.kubeflow.org/support"
_POD = ("template", "spec", "template")
_QUEUE = "scheduling.volcano.sh/queue-name"
_UNKNOWN = Processes(per_node="", count=None, reason="the runtime is not known")


def trainer(obj: JSON, view: View, version: Release) -> JSON:
    """The fact `trainer` of one object."""
    is_job = group_kind(obj) == (GROUP, "TrainJob")
    obj = shaped(obj, "TrainJob").object if is_job else {}
    reference = mapping(get(obj, ("spec", "runtimeRef")))
    found = find(reference, view) if is_job else None
    runtime = mapping(get(found, ("spec",)))
    merged = merge(obj, runtime, version, view.deadline) if found is not None else Merged(spec={})
    node_job = _node_job(merged.spec)
    node = _container(node_job, "node")
    asked = get(obj, ("spec", "trainer", "resourcesPerNode"))
    resources = asked if asked is not None else mapping(get(node, ("resources",)))
    own = get(_container(_node_job(get(runtime, ("template", "spec"))), "node"), ("resources",))
    processes = _processes(obj, runtime, resources, version, is_known=found is not None)
    return {
        "version": shown(version),
        "minor": minor(version),
        "object": obj,
        "runtime": {
            "kind": text(reference.get("kind")) or CLUSTER_RUNTIME.kind,
            "name": text(reference.get("name")),
            "found": found is not None,
            **_absence(reference, view, is_absent=is_job and found is None),
            "deprecated": get(found, ("metadata", "labels", _DEPRECATED)) == "deprecated",
            "plugin": plugin(runtime) if found is not None else "",
            "spec": runtime,
        },
        "nodes": node_count(obj, runtime) if is_job else 0,
        "jobSet": merged.spec,
        "node": {
            "found": node is not None,
            "job": _name(node_job),
            "container": mapping(node),
            "resources": resources,
            "claims": list(_claims(obj, node_job, merged, view.unnoted(), version)) if is_job else [],
        },
        "processes": {
            **processes,
            "podGpus": devices_of(get(node, ("resources",))),
            "runtimeGpus": devices_of(own),
        },
        "names": _names(obj, merged.spec),
        "scheduling": _scheduling(runtime, merged),
        "notes": (
            list(_notes(obj, runtime, merged, (processes["gpus"], version, view.deadline))) if found is not None else []
        ),
    }


def runtime_podsets(fact: JSON) -> tuple[PodSet, ...]:
    """The pod sets of the merged JobSet. They stand nowhere in the TrainJob: the path is where it names the runtime."""
    return tuple(
        PodSet(name=_name(job), path=("spec", "runtimeRef"), template=template, count=_pods(job), elsewhere=True)
        for job in items(fact["jobSet"].get("replicatedJobs"))
        if isinstance(template := get(job, _POD), dict)
    )


def _pods(job: JSON) -> int:
    return name_length.replicas(job) * parallelism(job)


def find(reference: JSON, view: View) -> JSON | None:
    """The runtime that a TrainJob names; what is not found is `missing` in the view."""
    name = text(get(reference, ("name",)))
    if not name:
        return None
    namespaced = get(reference, ("kind",)) == RUNTIME.kind
    kind = RUNTIME if namespaced else CLUSTER_RUNTIME
    found = view.get(kind, name, namespaced=namespaced)
    return None if found is None else shaped(found, kind.kind).object


def _name(value: JSON) -> str:
    return text(value.get("name")) if isinstance(value, dict) else ""


def _container(job: JSON, name: str) -> JSON:
    return next((each for each in items(get(job, (*_POD, "spec", "containers"))) if _name(each) == name), None)


def _notes(obj: JSON, runtime: JSON, merged: Merged, asked: tuple[int, Release, Deadline]) -> Iterator[JSON]:
    """What became of the TrainJob's words, of the runtime's own, and what JobSet will say of both together."""
    gpus, version, deadline = asked
    yield from deadline.paced(merged.notes)
    effective = {**runtime, "template": {"spec": merged.spec}}
    yield from steps.notes(obj, effective, version)
    yield from ({**each, "path": "spec.runtimeRef"} for each in steps.runtime_notes(effective, version, deadline))
    if plugin(runtime) == "torch":
        yield from torchtune.notes(obj, gpus, version)
    told = {(each["job"], each["container"]) for each in merged.notes}
    broken = [
        found
        for found in findings(merged.spec, deadline)
        if told.isdisjoint(((found.job, ""), (found.job, found.container), (found.job, found.text)))
    ]
    if not broken:
        return
    own = {replace(each, at=()) for each in findings(mapping(get(runtime, ("template", "spec"))), deadline)}
    patches = overlays.field(version)
    for found in deadline.paced(broken):
        is_own = replace(found, at=()) in own or not items(get(obj, ("spec", patches)))
        path = "spec.runtimeRef" if is_own else f"spec.{patches}"
        yield {**found.note(("spec", "template", "spec")), "path": path}


def _node_job(spec: JSON) -> JSON:
    """The replicated job whose `node` container Trainer reads: the first named `node` or labelled as the trainer."""
    jobs = [job for job in items(get(spec, ("replicatedJobs",))) if _name(job) == "node" or is_trainer(job)]
    return next((job for job in jobs if _container(job, "node") is not None), jobs[0] if jobs else None)


def _absence(reference: JSON, view: View, *, is_absent: bool) -> JSON:
    """Whether a runtime that was not found is known not to be there, and which one is near."""
    name = text(get(reference, ("name",)))
    if not is_absent or not name:
        return {"absent": False, "nearest": ""}
    kind = RUNTIME if get(reference, ("kind",)) == RUNTIME.kind else CLUSTER_RUNTIME
    near = view.nearest(name, (_name(each.get("metadata")) for each in view.objects(kind)))
    return {"absent": near != "" or view.is_whole(), "nearest": near}


def _processes(obj: JSON, runtime: JSON, resources: JSON, version: Release, *, is_known: bool) -> JSON:
    explicit = get(obj, ("spec", "trainer", "numProcPerNode"))
    predicted = predict(obj, runtime, resources, version) if is_known else _UNKNOWN
    gpus, ambiguous = trainer_count(mapping(get(resources, ("limits",))), mapping(get(resources, ("requests",))))
    return {
        "perNode": predicted.per_node,
        "count": predicted.count,
        "reason": predicted.reason,
        "explicit": explicit is not None,
        "gpus": gpus,
        "ambiguous": ambiguous,
    }


def _claims(obj: JSON, job: JSON, merged: Merged, view: View, version: Release) -> Iterator[JSON]:
    """The device claims that the trainer's node is meant to have, resolved.

    Those that the container `node` refers to, those that it would but for resourcesPerNode (`lost`), and those that no
    container refers to. What the claims are missing is not this fact's to say: `found` and `devices` tell.
    """
    template = get(job, _POD) if job is not None else {"spec": {"resourceClaims": list(_own_claims(obj))}}
    lost = {note["container"] for note in merged.notes if note["what"] == "lostClaim"}
    merged_too = template is not None and version >= KEEPS_CLAIMS
    per_node = [] if merged_too else items(get(obj, ("spec", "trainer", "resourceClaimsPerNode")))
    podset = PodSet(name=_name(job), path=(), template=template or {})
    extra = PodSet(name="", path=("spec", "trainer"), template={"spec": {"resourceClaims": per_node}})
    node = next((each for each in containers(podset.template) if each.name == "node" and not each.init), None)
    wanted = lost | {_name(entry) for entry in (node.claims() if node else ())}
    for claim in dra({}, (podset, extra), view)["claims"]:
        if claim["name"] in wanted or not claim["users"]:
            kept = ("name", "kind", "reference", "found", "devices", "atLeast", "gpu")
            known = [each for request in claim["requests"] for each in (request, *request["choices"])]
            yield {key: claim[key] for key in kept} | {
                "lost": claim["name"] in lost,
                "otherDevice": bool(known) and all(each["deviceKind"] and not each["gpu"] for each in known),
            }


def _own_claims(obj: JSON) -> Iterator[JSON]:
    """The claims that a TrainJob's patches carry; of one name the last, as merging would have it."""
    claims: dict[str, JSON] = {}
    for patch in items(get(obj, ("spec", "runtimePatches"))):
        for job in items(get(patch, ("trainingRuntimeSpec", "template", "spec", "replicatedJobs"))):
            for claim in items(get(job, (*_POD, "spec", "resourceClaims"))):
                claims[_name(claim)] = claim
    yield from claims.values()


def _names(obj: JSON, spec: JSON) -> JSON:
    """How long the TrainJob's name may be, and what is named after it that makes it so."""
    limit, of, job = name_length.limit(spec)
    return {"limit": limit, "of": of, "job": job, "length": name_length.length(obj)}


def _scheduling(runtime: JSON, merged: Merged) -> JSON:
    """Who schedules the pods together, and how many it waits for: volcano.go and coscheduling.go make the PodGroup.

    A group has one member for each pod of one replica of each replicated job; `first` are those of jobs that depend on
    none, and so the only ones there are at first.
    """
    policy = mapping(get(runtime, ("podGroupPolicy",)))
    by = next((name for name in ("volcano", "coscheduling") if policy.get(name) is not None), "")
    jobs = items(get(merged.spec, ("replicatedJobs",)))
    pods = [parallelism(job) for job in jobs]
    return {
        "by": by,
        "queue": merged.annotations.get(_QUEUE),
        "queueAt": merged.annotated.get(_QUEUE, ""),
        "priorityClasses": sorted({name for job in jobs if (name := named(get(job, _POD)))}),
        "members": sum(pods),
        "first": sum(count for job, count in zip(jobs, pods, strict=True) if not items(get(job, ("dependsOn",)))),
    }
