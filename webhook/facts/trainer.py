"""The fact `trainer`: a TrainJob as Kubeflow Trainer will run it, merged with its runtime.

For anything but a TrainJob the fact says so with an empty `runtime.name`. Without the runtime object it tells what the
TrainJob itself carries and names the runtime in `missing`. Rules of merging: runtime.py; of counting: processes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook.attributes import JSON, GroupVersionKind
from webhook.facts import steps
from webhook.facts.containers import containers, items, text
from webhook.facts.dra import dra
from webhook.facts.gpu import devices_of, trainer_count
from webhook.facts.jobset import findings
from webhook.facts.nearest import nearest
from webhook.facts.processes import Processes, plugin, predict
from webhook.facts.runtime import KEEPS_CLAIMS, Merged, is_trainer, merge, node_count
from webhook.facts.view import NAMESPACE, View
from webhook.paths import FieldPath, get
from webhook.workloads.podsets import PodSet, group_kind

GROUP = "trainer.kubeflow.org"
CLUSTER_RUNTIME = GroupVersionKind(GROUP, "v1alpha1", "ClusterTrainingRuntime")
RUNTIME = GroupVersionKind(GROUP, "v1alpha1", "TrainingRuntime")
KINDS = (CLUSTER_RUNTIME, RUNTIME, NAMESPACE)

_DEPRECATED = "trainer.kubeflow.org/support"
_POD = ("template", "spec", "template")
_PARALLELISM = ("template", "spec", "parallelism")
_NAME_LIMIT = 63  # DNS label: the pod's name is its host name (jobset_webhook.go, IsDNS1035Label)
_UNKNOWN = Processes(per_node="", count=None, reason="the runtime is not known")


def trainer(obj: JSON, view: View, version: tuple[int, int]) -> JSON:
    """The fact of one object."""
    is_job = group_kind(obj) == (GROUP, "TrainJob")
    reference = get(obj, ("spec", "runtimeRef")) or {} if is_job else {}
    found = _runtime(reference, view) if is_job else None
    runtime = get(found, ("spec",)) or {}
    merged = merge(obj, runtime, version) if found is not None else Merged(spec={})
    node_job = _node_job(merged.spec)
    node = _container(node_job, "node")
    asked = get(obj, ("spec", "trainer", "resourcesPerNode")) if is_job else None
    resources = asked if asked is not None else get(node, ("resources",)) or {}
    own = get(_container(_node_job(get(runtime, ("template", "spec"))), "node"), ("resources",)) or {}
    apart = View(view.cluster, view.namespace)
    processes = _processes(obj, runtime, resources, version, is_known=found is not None)
    return {
        "version": ".".join(map(str, version)),
        "minor": version[1],
        "runtime": {
            "kind": text(get(reference, ("kind",))) or CLUSTER_RUNTIME.kind,
            "name": text(get(reference, ("name",))),
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
            "container": node or {},
            "resources": resources,
            "claims": list(_claims(obj, node_job, merged, apart, version)) if is_job else [],
        },
        "processes": {
            **processes,
            "podGpus": devices_of(get(node, ("resources",))),
            "runtimeGpus": devices_of(own),
        },
        "names": _names(obj, merged.spec),
        "notes": [*merged.notes, *_notes(obj, runtime, merged, version)] if found is not None else merged.notes,
        "missing": view.missing,
    }


def runtime_podsets(fact: JSON) -> tuple[PodSet, ...]:
    """The pod sets of the merged JobSet. They stand nowhere in the TrainJob: the path is where it names the runtime."""
    return tuple(
        PodSet(name=_name(job), path=("spec", "runtimeRef"), template=template, count=_pods(job), elsewhere=True)
        for job in items(fact["jobSet"].get("replicatedJobs"))
        if isinstance(template := get(job, _POD), dict)
    )


def _pods(job: JSON) -> int:
    return _count(job, ("replicas",)) * _count(job, _PARALLELISM)


def _count(job: JSON, path: FieldPath) -> int:
    found = get(job, path, 1)
    return found if isinstance(found, int) else 1


def _runtime(reference: JSON, view: View) -> JSON | None:
    name = text(get(reference, ("name",)))
    if not name:
        return None
    namespaced = get(reference, ("kind",)) == RUNTIME.kind
    return view.get(RUNTIME if namespaced else CLUSTER_RUNTIME, name, namespaced=namespaced)


def _name(value: JSON) -> str:
    return text(value.get("name")) if isinstance(value, dict) else ""


def _container(job: JSON, name: str) -> JSON:
    return next((each for each in items(get(job, (*_POD, "spec", "containers"))) if _name(each) == name), None)


def _notes(obj: JSON, runtime: JSON, merged: Merged, version: tuple[int, int]) -> Iterator[JSON]:
    """What became of the TrainJob's words, of the runtime's own, and what JobSet will say of both together."""
    yield from steps.notes(obj, runtime, version)
    yield from ({**note, "path": "spec.runtimeRef"} for note in steps.runtime_notes(runtime))
    told = {(note["job"], note["container"]) for note in merged.notes}
    broken = [
        found
        for found in findings(merged.spec)
        if told.isdisjoint(((found.job, ""), (found.job, found.container), (found.job, found.text)))
    ]
    if not broken:
        return
    own = {replace(each, at=()) for each in findings(get(runtime, ("template", "spec")) or {})}
    for found in broken:
        path = "spec.runtimeRef" if replace(found, at=()) in own else "spec.runtimePatches"
        yield {**found.note(("spec", "template", "spec")), "path": path}


def _node_job(spec: JSON) -> JSON:
    """The replicated job whose `node` container Trainer reads: the first named `node` or labelled as the trainer."""
    jobs = items(get(spec, ("replicatedJobs",)))
    return next((job for job in jobs if _name(job) == "node" or is_trainer(job)), None)


def _absence(reference: JSON, view: View, *, is_absent: bool) -> JSON:
    """Whether a runtime that was not found is known not to be there, and which one is near."""
    name = text(get(reference, ("name",)))
    if not is_absent or not name:
        return {"absent": False, "nearest": ""}
    kind = RUNTIME if get(reference, ("kind",)) == RUNTIME.kind else CLUSTER_RUNTIME
    near = nearest(name, (_name(each.get("metadata")) for each in view.objects(kind)))
    return {"absent": near != "" or view.is_whole(), "nearest": near}


def _processes(obj: JSON, runtime: JSON, resources: JSON, version: tuple[int, int], *, is_known: bool) -> JSON:
    explicit = get(obj, ("spec", "trainer", "numProcPerNode"))
    predicted = predict(obj, runtime, resources, version) if is_known else _UNKNOWN
    gpus, ambiguous = trainer_count(get(resources, ("limits",)) or {}, get(resources, ("requests",)) or {})
    return {
        "perNode": predicted.per_node,
        "count": predicted.count,
        "reason": predicted.reason,
        "explicit": explicit is not None,
        "gpus": gpus,
        "ambiguous": ambiguous,
    }


def _claims(obj: JSON, job: JSON, merged: Merged, view: View, version: tuple[int, int]) -> Iterator[JSON]:
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
    """How long the TrainJob's name may be, and the replicated job that makes it so.

    kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go: `<name>-<job>-<replica>-<pod>-abcde` is a DNS label.
    """
    limit, longest = _NAME_LIMIT, ""
    for job in items(get(spec, ("replicatedJobs",))):
        highest = [max(0, _count(job, path) - 1) for path in (("replicas",), _PARALLELISM)]
        room = _NAME_LIMIT - len("-".join(("", _name(job), *map(str, highest), "abcde")))
        if room < limit:
            limit, longest = room, _name(job)
    return {"limit": limit, "job": longest, "length": _length(obj)}


def _length(obj: JSON) -> int:
    """Of the name, or of the one that generateName will make (k8s.io/apiserver pkg/storage/names: 58 and 5 more)."""
    prefix = text(get(obj, ("metadata", "generateName")))
    return len(text(get(obj, ("metadata", "name")))) or (min(len(prefix), 58) + 5 if prefix else 0)
