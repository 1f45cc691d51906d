"""What of a TrainJob reaches its runtime's steps, and what its plugin will refuse or overlook.

Pure: a TrainJob, the spec of its runtime and the release give notes. Sources: kubeflow/trainer@8c0f5059bd51
pkg/runtime/framework/plugins/{jobset/jobset,jobset/builder,torch/torch,mpi/mpi,xgboost/xgboost,flux/flux}.go, and the
same of branches release-2.0 to release-2.3 for what only some releases refuse. Merging is runtime.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.finding import note
from webhook.facts.jobset.validation import POD
from webhook.facts.pods.containers import items, mapping, names, text, whole
from webhook.facts.trainer.nodes import STEP_LABEL, is_trainer, launcher_is_node
from webhook.facts.trainer.processes import plugin
from webhook.facts.trainer.releases import INITIALIZER_MOUNT, INJECTION, NUMBERS_ONLY, REFUSES_ZERO
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.releases import Release

RESERVED: Final[Mapping[str, frozenset[str]]] = {
    "torch": frozenset(
        ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    ),
    "mpi": frozenset(
        f"OMPI_MCA_{name}"
        for name in (*("orte_default_hostfile", "plm_rsh_args", "orte_keep_fqdn_hostnames", "orte_set_default_slots"),)
    ),
    "xgboost": frozenset(("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")),
}


def notes(job: JSON, runtime: JSON, release: Release) -> Iterator[JSON]:
    """Everything there is to say of a TrainJob on a runtime (its `spec`)."""
    jobs = _jobs(runtime)
    trainer = get(job, ("spec", "trainer"))
    yield from _initializers(job, jobs, release)
    if isinstance(trainer, dict):
        yield from _unreached(trainer, jobs, runtime)
        yield from _reserved(trainer, plugin(runtime), release)
        yield from _processes(trainer.get("numProcPerNode"), plugin(runtime), release)
    if plugin(runtime) == "mpi":
        yield from _launcher(mapping(trainer), jobs, runtime)


def runtime_notes(runtime: JSON, release: Release, deadline: Deadline | None = None) -> Iterator[JSON]:
    """Everything there is to say of the spec of a runtime alone."""
    jobs = _jobs(runtime)
    match plugin(runtime):
        case "torch":
            if release >= INJECTION:
                yield from _injection(runtime, jobs, deadline or Deadline())
            yield from _rendezvous(runtime, jobs)
        case "flux":
            yield from _installer(jobs)
        case "mpi":
            yield from _launchers(runtime, jobs)


def _jobs(runtime: JSON) -> list[JSON]:
    listed = items(get(runtime, ("template", "spec", "replicatedJobs")))
    return [each for each in listed if isinstance(each, dict)]


def _name(value: JSON) -> str:
    return text(value.get("name")) if isinstance(value, dict) else ""


def _containers(job: JSON, kind: str = "containers") -> list[JSON]:
    return items(get(job, (*POD, "spec", kind)))


def _container(job: JSON, name: str) -> JSON | None:
    return next((each for each in _containers(job) if _name(each) == name), None)


def _initializers(job: JSON, jobs: list[JSON], release: Release) -> Iterator[JSON]:
    """jobset.go checkInitializer: the job, its container, and since 2.3 the container's mount."""
    for role in ("dataset", "model"):
        if get(job, ("spec", "initializer", role)) is None:
            continue
        name, path = f"{role}-initializer", f"spec.initializer.{role}"
        step = next((each for each in jobs if _name(each) == name), None)
        container = _container(step, name) if step is not None else None
        mounts = map(_name, items(container.get("volumeMounts"))) if container is not None else ()
        if step is None:
            yield note("initializer", path, f"no replicated job `{name}`")
        elif container is None and name not in map(_name, _containers(step, "initContainers")):
            yield note("initializer", path, f"no container `{name}` in its replicated job `{name}`", name)
        elif release >= INITIALIZER_MOUNT and "initializer" not in mounts:
            words = f"no volumeMount `initializer` in its container `{name}`"
            yield note("initializer", path, words, name, name)


def _unreached(trainer: JSON, jobs: list[JSON], runtime: JSON) -> Iterator[JSON]:
    """Fields of spec.trainer that land in no container, and args of the runtime that a new command gets."""
    step = next((each for each in jobs if is_trainer(each)), None)
    node = _container(step, "node") if step is not None else None
    worker = next((each for each in jobs if _name(each) == "node"), None)
    is_mpi = get(runtime, ("mlPolicy", "mpi")) is not None
    shared = get(runtime, ("mlPolicy", "mpi", "runLauncherAsNode")) is True and _container(worker, "node") is not None
    if node is None:
        words = f"no replicated job carries the label {STEP_LABEL}: trainer"
        if step is not None:
            words = f"the trainer's replicated job `{_name(step)}` has no container `node`"
        for field in ("image", "command", "args", "env", "resourcesPerNode"):
            if trainer.get(field) and not (shared and field in ("env", "resourcesPerNode")):
                yield note("ignoredTrainer", f"spec.trainer.{field}", words, _name(step))
    elif trainer.get("command") and trainer.get("args") is None and node.get("args"):
        yield note("keptArgs", "spec.trainer.command", " ".join(map(str, items(node["args"]))), _name(step), "node")
    if step is None and not (is_mpi and worker is not None) and trainer.get("numNodes") is not None:
        words = f"no replicated job carries the label {STEP_LABEL}: trainer"
        yield note("ignoredNodes", "spec.trainer.numNodes", words)


def _reserved(trainer: JSON, name: str, release: Release) -> Iterator[JSON]:
    """Variables that the plugin sets itself; torch looks at them since 2.2 always, mpi since 2.3."""
    reserved = RESERVED.get(name, frozenset())
    is_late = (name == "mpi" and release < INJECTION) or (
        name == "torch" and release < NUMBERS_ONLY and trainer.get("numProcPerNode") is None
    )
    variables = names(trainer.get("env")) if reserved and not is_late else []
    if not reserved.isdisjoint(variables):
        for index, each in enumerate(variables):
            if each in reserved:
                yield note("reservedEnv", f"spec.trainer.env[{index}].name", each)


def _processes(asked: JSON, name: str, release: Release) -> Iterator[JSON]:
    """What a plugin does not take for numProcPerNode; what the API server refuses is not repeated."""
    path, number = "spec.trainer.numProcPerNode", whole(asked)
    if asked is None or is_placeholder(text(asked)):
        return
    if release < NUMBERS_ONLY and number is None:
        words = ("auto", "cpu", "gpu") if name == "torch" else () if name == "mpi" else (asked,)
        if asked not in words:
            yield note("badProcesses", path, " or ".join(("a whole number", *words)))
    elif number is not None and number < 1 and release < REFUSES_ZERO and name in ("torch", "mpi", "flux"):
        is_refused = name == "flux" and release >= INJECTION
        yield note("badProcesses" if is_refused else "noProcesses", path, "a whole number of at least 1")


def _injection(runtime: JSON, jobs: list[JSON], deadline: Deadline) -> Iterator[JSON]:
    """torch.go validateEnvInjectionTargets: jobs and containers that the runtime does not have."""
    first = {_name(each): each for each in reversed(jobs)}
    held: dict[str, set[str]] = {}
    targets = items(get(runtime, ("mlPolicy", "torch", "envInjection", "targets")))
    for index, target in enumerate(deadline.paced(targets)):
        wanted = text(get(target, ("jobName",)))
        if wanted not in held:
            job = first.get(wanted)
            listed = (*_containers(job), *_containers(job, "initContainers")) if job else ()
            held[wanted] = {_name(each) for each in listed}
        for name in deadline.paced(items(get(target, ("containerNames",)))):
            if name not in held[wanted]:
                path = f"spec.mlPolicy.torch.envInjection.targets[{index}]"
                yield note("envInjection", path, "", wanted, text(name))


def _rendezvous(runtime: JSON, jobs: list[JSON]) -> Iterator[JSON]:
    """Torch's master address is `<name>-node-0-0.<name>`, whatever the job and the subdomain are called."""
    step = next((each for each in jobs if is_trainer(each)), None)
    if step is not None and _name(step) != "node":
        words = f"the trainer's replicated job is named `{_name(step)}`, not `node`"
        yield note("rendezvous", "spec.template.spec.replicatedJobs", words, _name(step))
    if subdomain := text(get(runtime, ("template", "spec", "network", "subdomain"))):
        words = f"network.subdomain is `{subdomain}`, not the job's own name"
        yield note("rendezvous", "spec.template.spec.network.subdomain", words)


def _launcher(trainer: JSON, jobs: list[JSON], runtime: JSON) -> Iterator[JSON]:
    """What of spec.trainer only the launcher of an MPI runtime gets, and a launcher that cannot be a node."""
    worker = next((each for each in jobs if _name(each) == "node"), None)
    as_node = launcher_is_node(get(runtime, ("mlPolicy",)))
    step = next((each for each in jobs if is_trainer(each)), None)
    if worker is not None and not is_trainer(worker):
        if trainer.get("resourcesPerNode") is not None and not as_node:
            yield note("launcherResources", "spec.trainer.resourcesPerNode", "", _name(step))
        if trainer.get("image"):
            image = text(get(_container(worker, "node"), ("image",)))
            yield note("workerImage", "spec.trainer.image", image, "node", "node")
    elif worker is not None and trainer.get("command"):
        yield note("workerCommand", "spec.trainer.command", "", "node", "node")
    nodes = whole(trainer.get("numNodes"))
    if as_node and nodes is not None and nodes > 1:
        for name in ("launcher", "node"):
            if name not in map(_name, jobs):
                yield note("launcherAsNode", "spec.trainer.numNodes", name, name)
    elif as_node and nodes == 1 and worker is not None and step is not worker:
        yield note("extraNode", "spec.trainer.numNodes", "2", "node")


def _launchers(runtime: JSON, jobs: list[JSON]) -> Iterator[JSON]:
    """mlPolicy.numNodes is how many pods the labelled job gets, which of an mpi runtime is the launcher (nodes.py)."""
    built = get(runtime, ("mlPolicy", "mpi", "mpiImplementation"), "OpenMPI")
    launcher = next((each for each in jobs if _name(each) == "launcher"), None)
    if built != "OpenMPI" and _container(launcher, "node") is not None and not is_placeholder(text(built)):
        yield note("mpiImplementation", "spec.mlPolicy.mpi.mpiImplementation", text(built))
    nodes = whole(get(runtime, ("mlPolicy", "numNodes")))
    step = next((each for each in jobs if is_trainer(each)), None)
    if step is not None and _name(step) != "node" and nodes is not None and nodes > 1:
        yield note("launchers", "spec.mlPolicy.numNodes", str(nodes), _name(step))


def _installer(jobs: list[JSON]) -> Iterator[JSON]:
    node = next((each for each in jobs if _name(each) == "node"), None)
    if "flux-installer" in map(_name, _containers(node, "initContainers")):
        yield note("fluxInstaller", "spec.template.spec.replicatedJobs", "flux-installer", "node", "flux-installer")
