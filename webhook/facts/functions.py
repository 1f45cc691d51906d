"""The CEL names of the facts: their types, the objects they look up, and the one function that computes them.

A policy asks for them with the annotation `claimgate.dev/facts: gpu,dra`. A fact is computed when an expression first
reads it, once per object.

    podSets   [{name, path, template, count, groups, pods, change, changed}]
                                                                   podSets.all(p, p.pods == null || p.pods <= 64)
    gpu       {containers, patches, podSets, vendors, devices, missing}
                                                                   gpu.containers.all(c, c.resources.all(r, r.whole))
    dra       {claims, references, doubled, implicit, requests, constraints, selectors, notes, configs, missing}
                                                                   dra.claims.all(c, !c.absent)
    podGroup  {groups, others, missing}                            podGroup.others.size() == 0
    inventory {devices, requests, missing}                         inventory.requests.all(r, r.selected != 0)
    training  {release, minor, object, old, changes, plugin, fields, notes, roles, missing}
                                                                   training.fields.size() == 0
    sandbox   {references, pools, notes, missing}                  sandbox.references.all(r, !r.absent)
    trainer   {version, object, runtime, nodes, jobSet, node, processes, names, notes, missing}
                                                                   trainer.processes.gpus > 0
    priorities  {classes, missing}                                 priorities.classes.all(c, !c.absent)
    running     {found, active, missing}                           running.active.size() == 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from webhook import paths
from webhook.attributes import JSON, Attributes
from webhook.cel.types import Structure, Type
from webhook.cluster import Cluster
from webhook.cluster.interest import Interest
from webhook.deadline import Deadline
from webhook.facts import structures
from webhook.facts.assumptions import Assumptions
from webhook.facts.dra import fact as dra
from webhook.facts.dra import inventory
from webhook.facts.gpu.fact import gpu
from webhook.facts.gpu.resource_fields import asides
from webhook.facts.opensandbox import fact as sandbox
from webhook.facts.scheduling import pod_group as podgroup
from webhook.facts.scheduling import priority_classes as priorities
from webhook.facts.trainer import fact as trainer
from webhook.facts.trainer import running_jobset as running
from webhook.facts.training_jobs import fact as training
from webhook.facts.view import View
from webhook.workloads import changes
from webhook.workloads.embedded import embedded
from webhook.workloads.podsets import PodSet, fragments, group_kind, podsets
from webhook.workloads.table import Table

_TRAIN_JOB = (trainer.GROUP, "TrainJob")
NAMES = (
    *("podSets", "gpu", "dra", "podGroup", "inventory", "trainer", "training", "sandbox"),
    *("priorities", "running"),
)

_LOOKUPS: Mapping[str, tuple[Interest, ...]] = {
    "podSets": trainer.LOOKUPS,
    "gpu": trainer.LOOKUPS,
    "dra": (*dra.LOOKUPS, *trainer.LOOKUPS),
    "podGroup": (podgroup.LOOKUP, *trainer.LOOKUPS),
    "inventory": inventory.LOOKUPS,
    "trainer": (*trainer.LOOKUPS, *dra.LOOKUPS),
    "sandbox": sandbox.LOOKUPS,
    "priorities": (priorities.LOOKUP, *trainer.LOOKUPS),
    "running": running.LOOKUPS,
}


def lookups(name: str) -> tuple[Interest, ...]:
    """The objects that a fact looks up in the cluster, and what it reads of them."""
    return _LOOKUPS.get(name, ())


def declared(name: str) -> tuple[Type, tuple[Structure, ...]]:
    """The type under which a policy sees a fact, and the structures inside it."""
    return structures.TYPES[name], structures.ALL


def compute(
    name: str,
    obj: JSON,
    attributes: Attributes,
    cluster: Cluster,
    table: Table,
    *,
    assumptions: Assumptions = Assumptions(),  # noqa: B008 - frozen
    pods: int | None = 1,
    deadline: Deadline | None = None,
) -> JSON:
    """One fact of an object, as plain JSON. The object may be null (on DELETE): it then has no pods.

    attributes give the namespace in which references are looked up; obj may be a virtual Pod of the request's object,
    which stands for some number of pods, None where nobody knows. What is walked is charged to the deadline.
    """
    view = View(cluster, attributes.namespace, deadline or Deadline())
    view.deadline.look()  # asked again once the time is up, a fact costs nothing
    match name:
        case "podSets":
            found = _podsets(obj, table, view, assumptions)
            counted = found if pods == 1 else [replace(podset, count=pods) for podset in found]
            return _pod_sets(obj, attributes.old_object, counted, table, view.deadline)
        case "gpu":
            parts = fragments(obj, table, view.deadline)
            return gpu(_podsets(obj, table, view, assumptions), parts, view.missing, asides(obj), view.deadline)
        case "dra":
            return dra.dra(obj, _podsets(obj, table, view, assumptions), view)
        case "podGroup":
            return podgroup.pod_group(_podsets(obj, table, view, assumptions), view)
        case "inventory":
            return inventory.inventory(obj, view)
        case "trainer":
            return trainer.trainer(obj, view, assumptions.trainer)
        case "training":
            return training.training(obj, assumptions.trainer, attributes.old_object, view.deadline)
        case "sandbox":
            return sandbox.sandbox(obj, view)
        case "priorities":
            return priorities.priorities(_podsets(obj, table, view, assumptions), view)
        case "running":
            return running.running(obj, view)
    raise KeyError(name)


def _podsets(obj: JSON, table: Table, view: View, assumptions: Assumptions) -> tuple[PodSet, ...]:
    """The pod sets of an object; those of a TrainJob, itself or inside it, come from its runtime, maybe missing."""
    if group_kind(obj) == _TRAIN_JOB:
        return trainer.runtime_podsets(trainer.trainer(obj, view, assumptions.trainer))
    return (*podsets(obj, table, view.deadline), *_inside(obj, table, view, assumptions))


def _inside(obj: JSON, table: Table, view: View, assumptions: Assumptions) -> Iterator[PodSet]:
    """The pod sets of the TrainJobs inside an object, as often as it makes them at a time."""
    for found in view.deadline.paced(embedded(obj, table)):
        if group_kind(found.object) == _TRAIN_JOB:
            for each in trainer.runtime_podsets(trainer.trainer(found.object, view, assumptions.trainer)):
                yield replace(each, path=found.path + each.path, groups=each.groups * found.groups)


def _pod_sets(obj: JSON, old: JSON, found: Sequence[PodSet], table: Table, deadline: Deadline) -> JSON:
    becomes = changes.change(obj, old, table)
    before = {podset.name: podset for podset in podsets(old, table, deadline)}
    return [
        {**_shown(podset), "change": becomes, "changed": changes.changed(podset, before.get(podset.name))}
        for podset in deadline.paced(found)
    ]


def _shown(podset: PodSet) -> JSON:
    return {
        "name": podset.name,
        "path": paths.render(podset.path),
        "template": podset.template,
        "count": podset.count,
        "groups": podset.groups,
        "pods": podset.pods,
    }
