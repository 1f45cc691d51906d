"""Computes how many processes Kubeflow Trainer starts per node, and gives the reason.

kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins: torch/torch.go, mpi/mpi.go, xgboost/xgboost.go,
flux/flux.go, jax/jax.go, plainml; release-2.0 for what 2.0 made of resourcesPerNode. Trainer counts extended
resources whose name contains `gpu`; it never looks at device claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.resource_units import cpu_count
from webhook.facts.train_job_pods.releases import NUMBERS_ONLY, TEMPLATES
from webhook.facts.train_job_pods.types import MLPolicy, Trainer
from webhook.releases import Release
from webhook.typed.fields import Amount, read_whole_number
from webhook.typed.pods import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesPerNode:
    """`per_node` is a number, `auto` or `gpu` as Trainer passes it on; `count` is its meaning, None if unknown."""

    per_node: str
    count: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.per_node} ({self.reason})"


UNKNOWN = ProcessesPerNode(per_node="", count=None, reason="the runtime is not known")


def predict_processes(trainer: Trainer, policy: MLPolicy, resources: Resources, version: Release) -> ProcessesPerNode:
    """Return the processes per node; `resources` are those that Trainer reads."""
    explicit = trainer.num_proc_per_node
    gpus, _ = gpu_count(resources)
    match policy.plugin:
        case "torch":
            default = policy.torch.num_proc_per_node if version < NUMBERS_ONLY else None
            per_node = ("auto" if default is None else default) if explicit is None else explicit
            if version < TEMPLATES:
                return _torch_processes_of_2_0(per_node, trainer.resources_per_node, gpus)
            return _torch_processes(per_node, gpus, resources)
        case "mpi":
            number = policy.mpi.num_proc_per_node
            return _mpi_or_flux_processes("mpi", explicit, number, gpus, raises=version >= TEMPLATES)
        case "flux":
            return _mpi_or_flux_processes("flux", explicit, policy.flux.num_proc_per_node, gpus, raises=False)
        case "xgboost":
            reason = f"{gpus} GPUs are counted" if gpus else "no GPU is counted"
            return ProcessesPerNode(
                per_node=str(gpus or 1), count=gpus or 1, reason=f"xgboost starts one worker per GPU; {reason}"
            )
        case name:
            start = "jax starts one process per node" if name == "jax" else "the command is run once per node"
            return ProcessesPerNode(per_node="1", count=1, reason=f"{start}; numProcPerNode is not read")


def _torch_processes_of_2_0(per_node: JSON, resources: Resources, gpus: int) -> ProcessesPerNode:
    """Return the processes of 2.0, which reads only resourcesPerNode, its requests last."""
    if not resources:
        count = read_whole_number(per_node) or gpus or None
        return ProcessesPerNode(per_node=str(per_node), count=count, reason="torchrun gets it as written")
    for side, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if resources.has(side) and _are_cpus_counted(per_node, amounts):
            cpus = max(1, cpu_count({"requests": dict(amounts)}))
            return ProcessesPerNode(per_node=str(cpus), count=cpus, reason=f"Trainer 2.0 takes the CPUs of its {side}")
    if not resources.has("requests") or per_node == "cpu":
        return ProcessesPerNode(per_node="1", count=1, reason="Trainer 2.0 takes one without requests to read")
    return ProcessesPerNode(
        per_node=str(per_node), count=read_whole_number(per_node) or gpus or None, reason="torchrun gets it as written"
    )


def _are_cpus_counted(per_node: JSON, amounts: Mapping[str, Amount]) -> bool:
    if per_node == "auto":
        return not any("gpu" in name.lower() for name in amounts)
    return per_node == "cpu" and "cpu" in amounts


def _torch_processes(per_node: JSON, gpus: int, resources: Resources) -> ProcessesPerNode:
    if (number := read_whole_number(per_node)) is not None:
        return ProcessesPerNode(per_node=str(number), count=number, reason="numProcPerNode says so")
    if per_node == "gpu" or (per_node == "auto" and gpus):
        reason = f"torchrun starts one process per visible GPU; {gpus} are requested"
        return ProcessesPerNode(per_node=str(per_node), count=gpus or None, reason=reason)
    if per_node not in ("auto", "cpu"):
        return ProcessesPerNode(
            per_node=str(per_node), count=int(per_node) if str(per_node).isdecimal() else None, reason="as written"
        )
    if cpus := cpu_count(resources.json):
        reason = f"no GPU is counted, so it is the {cpus} CPUs"
        return ProcessesPerNode(per_node=str(cpus), count=cpus, reason=reason)
    return ProcessesPerNode(per_node="1", count=1, reason="the resources have no GPU and no CPU")


def _mpi_or_flux_processes(
    name: str, explicit: JSON, default: int | None, gpus: int, *, raises: bool
) -> ProcessesPerNode:
    """Return a number of the TrainJob or of the runtime, for mpi and flux; if `raises`, 1 becomes the GPUs."""
    number = 1 if default is None else default
    if (per_node := read_whole_number(explicit)) is not None:
        return ProcessesPerNode(per_node=str(per_node), count=per_node, reason="numProcPerNode says so")
    if raises and number == 1 and gpus > 1:
        return ProcessesPerNode(per_node=str(gpus), count=gpus, reason=f"{gpus} GPUs are counted")
    reason = f"the runtime's {name}.numProcPerNode is {number}"
    if number == 1 and not gpus:
        reason += " and no GPU is counted"
    return ProcessesPerNode(per_node=str(number), count=number, reason=reason)


def gpu_count(resources: Resources) -> tuple[int, bool]:
    """Return how many GPUs Trainer counts, and whether several names match, of which it takes any one.

    GetNumGPUPerNode of pkg/runtime/runtime.go: the first name that contains `gpu`, in Go's random map order; requests
    before limits.
    """
    for amounts in (resources.requests, resources.limits):
        fits = [name for name in amounts if "gpu" in name.lower()]
        counts = [
            amount.value() for name in fits if (amount := quantity.read_quantity_or_none(amounts[name])) is not None
        ]
        if counts and counts[0]:
            return counts[0], len(set(counts)) > 1
    return 0, False
