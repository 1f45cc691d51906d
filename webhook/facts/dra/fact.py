"""The facts `dra` and `inventory`: what device claims ask for, and which devices of the cluster they would take."""

from __future__ import annotations

from typing import Final

from webhook.facts.dra import inventory, pod_claims
from webhook.facts.dra.structures import DRA, DRA_STRUCTURES, INVENTORY, INVENTORY_STRUCTURES
from webhook.facts.fact import Fact, Result
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.trainer.lookups import RUNTIMES


def _dra(subject: Subject) -> Result:
    listed, view = subject.once(pod_sets), subject.view()
    value = pod_claims.dra(subject.object, listed.all, view)
    own = ("requests", "constraints", "selectors", "notes", "configs")
    return listed.result(value, *own, missing=view.missing())


def _inventory(subject: Subject) -> Result:
    view = subject.view()
    return Result(inventory.inventory(subject.object, view), view.missing())


FACTS: Final = (
    Fact(
        name="dra",
        about=(
            "Device claims of pods, looked up in the namespace of the object, in one form over v1alpha3, v1beta1, "
            "v1beta2 and v1. Of a ResourceClaim, ResourceClaimTemplate, DeviceClass or DeviceTaintRule its own parts; "
            "of a PodGroup or Workload what is wrong with its claims. An object counts as absent only from the view "
            "of a whole cluster, or where files are known to cover its kind; otherwise it is missing."
        ),
        examples=(
            "dra.claims.all(c, !c.absent)",
            "dra.claims.filter(c, c.gpu && c.users.size() == 0).size() == 0",
            "dra.references.all(r, !r.resolved || r.requestFound)",
            'dra.requests.all(r, r.selectors.all(s, s.problem == ""))',
            'dra.notes.all(n, n.what == "unknownField")',
            'dra.configs.all(c, c.driver != "gpu.nvidia.com" || c.notes.size() == 0)',
        ),
        type=DRA.type,
        structures=DRA_STRUCTURES,
        compute=_dra,
        lookups=(*pod_claims.LOOKUPS, *RUNTIMES),
    ),
    Fact(
        name="inventory",
        about=(
            "Which devices of the ResourceSlices of the cluster the selectors of a claim, a template or a class take, "
            "as the scheduler asks them. What is allocated, what is tainted and which node has a device play no "
            "part."
        ),
        examples=("inventory.requests.all(r, r.selected != 0)",),
        type=INVENTORY.type,
        structures=INVENTORY_STRUCTURES,
        compute=_inventory,
        lookups=inventory.LOOKUPS,
    ),
)
