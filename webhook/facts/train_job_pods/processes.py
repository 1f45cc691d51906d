"""How many processes Kubeflow Trainer starts per node, and why.

kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins: torch/torch.go, mpi/mpi.go, xgboost/xgboost.go,
flux/flux.go, jax/jax.go, plainml; release-2.0 for what 2.0 made of resourcesPerNode. Trainer counts extended
resources whose name contains `gpu`; it never looks at device claims.
"""

from __future__ import annotations

from dataclasses import dataclass

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.resource_units import cpu_count
from webhook.facts.train_job_pods.releases import NUMBERS_ONLY, TEMPLATES
from webhook.facts.values import whole
from webhook.paths import get
from webhook.releases import Release

PLUGINS = ("torch", "mpi", "flux", "jax", "xgboost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """per_node is a number, `auto` or `gpu` as Trainer passes it on; count what that comes to, None if unknown."""

    per_node: str
    count: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.per_node} ({self.reason})"


UNKNOWN = Processes(per_node="", count=None, reason="the runtime is not known")


def plugin(runtime: JSON) -> str:
    """The machine learning policy of a runtime's spec: of PLUGINS, `plain` without one, `none` without a policy."""
    policy = get(runtime, ("mlPolicy",))
    if policy is None:
        return "none"
    return next((name for name in PLUGINS if get(policy, (name,)) is not None), "plain")


def predict(job: JSON, runtime: JSON, resources: JSON, version: Release) -> Processes:
    """The processes per node; `resources` are those that Trainer reads: of the node container, or resourcesPerNode."""
    policy = get(runtime, ("mlPolicy",))
    explicit = get(job, ("spec", "trainer", "numProcPerNode"))
    gpus, _ = gpu_count(resources)
    match plugin(runtime):
        case "torch":
            default = get(policy, ("torch", "numProcPerNode"), "auto") if version < NUMBERS_ONLY else "auto"
            asked = default if explicit is None else explicit
            if version < TEMPLATES:
                return _first_torch(asked, get(job, ("spec", "trainer", "resourcesPerNode")), gpus)
            return _torch(asked, gpus, resources)
        case "mpi" | "flux" as name:
            raises = name == "mpi" and version >= TEMPLATES
            return _fixed(name, explicit, get(policy, (name, "numProcPerNode"), 1), gpus, raises=raises)
        case "xgboost":
            reason = f"{gpus} GPUs are counted" if gpus else "no GPU is counted"
            return Processes(
                per_node=str(gpus or 1), count=gpus or 1, reason=f"xgboost starts one worker per GPU; {reason}"
            )
        case name:
            start = "jax starts one process per node" if name == "jax" else "the command is run once per node"
            return Processes(per_node="1", count=1, reason=f"{start}; numProcPerNode is not read")


def _first_torch(asked: JSON, resources: JSON, gpus: int) -> Processes:
    """2.0 reads resourcesPerNode alone, and of that its requests last: without requests a number is lost."""
    if resources is None:
        count = whole(asked) or gpus or None
        return Processes(per_node=str(asked), count=count, reason="torchrun gets it as written")
    for side in ("limits", "requests"):
        amounts = resources.get(side)
        if amounts is not None and _takes_cpus(asked, amounts):
            cpus = max(1, cpu_count({"requests": amounts}))
            return Processes(per_node=str(cpus), count=cpus, reason=f"Trainer 2.0 takes the CPUs of its {side}")
    if resources.get("requests") is None or asked == "cpu":
        return Processes(per_node="1", count=1, reason="Trainer 2.0 takes one without requests to read")
    return Processes(per_node=str(asked), count=whole(asked) or gpus or None, reason="torchrun gets it as written")


def _takes_cpus(asked: JSON, amounts: dict[str, JSON]) -> bool:
    if asked == "auto":
        return not any("gpu" in name.lower() for name in amounts)
    return asked == "cpu" and "cpu" in amounts


def _torch(asked: JSON, gpus: int, resources: JSON) -> Processes:
    if (number := whole(asked)) is not None:
        return Processes(per_node=str(number), count=number, reason="numProcPerNode says so")
    if asked == "gpu" or (asked == "auto" and gpus):
        reason = f"torchrun starts one process per visible GPU; {gpus} are requested"
        return Processes(per_node=str(asked), count=gpus or None, reason=reason)
    if asked not in ("auto", "cpu"):
        return Processes(per_node=str(asked), count=int(asked) if str(asked).isdecimal() else None, reason="as written")
    if cpus := cpu_count(resources):
        reason = f"no GPU is counted, so it is the {cpus} CPUs"
        return Processes(per_node=str(cpus), count=cpus, reason=reason)
    return Processes(per_node="1", count=1, reason="the resources have no GPU and no CPU")


def _fixed(name: str, explicit: JSON, number: int, gpus: int, *, raises: bool) -> Processes:
    """A number of the TrainJob or of the runtime, for mpi and flux; where mpi `raises`, one becomes the GPUs."""
    if (asked := whole(explicit)) is not None:
        return Processes(per_node=str(asked), count=asked, reason="numProcPerNode says so")
    if raises and number == 1 and gpus > 1:
        return Processes(per_node=str(gpus), count=gpus, reason=f"{gpus} GPUs are counted")
    reason = f"the runtime's {name}.numProcPerNode is {number}"
    if number == 1 and not gpus:
        reason += " and no GPU is counted"
    return Processes(per_node=str(number), count=number, reason=reason)


def gpu_count(resources: JSON) -> tuple[int, bool]:
    """GPUs as Trainer counts them, and whether several names fit, of which it takes any one.

    GetNumGPUPerNode of pkg/runtime/runtime.go: the first name that contains `gpu`, in Go's random map order; requests
    before limits.
    """
    for side in ("requests", "limits"):
        amounts = get(resources, (side,), {})
        fits = [name for name in amounts if "gpu" in name.lower()]
        counts = [amount.value() for name in fits if (amount := quantity.read(amounts[name])) is not None]
        if counts and counts[0]:
            return counts[0], len(set(counts)) > 1
    return 0, False
