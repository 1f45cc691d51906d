"""How Trainer's plugins change the pods of a TrainJob: variables, ports, volumes, mounts and commands.

Plugins add entries to lists: a new entry replaces the old entry with the same key, or is appended. The torch plugin
completes a `tune run` command with the address of the first node, the recipe, the configuration of the recipe, and
paths. The flux plugin adds an installer, the volumes that the installer fills, and an entrypoint; without spec.trainer,
the flux plugin crashes. The alpha feature TrainJobStatus is not applied. Replicated jobs, containers and lists are
copied before they are changed.

Source: kubeflow/trainer@8c0f5059bd51 pkg/apply/apply.go, pkg/constants, pkg/runtime/runtime.go and
pkg/runtime/framework/plugins:
{torch/torch,torch/torchtune,jax/jax,xgboost/xgboost,mpi/mpi,flux/flux,coscheduling/coscheduling,volcano/volcano}.go
EnforceMLPolicy and EnforcePodGroupPolicy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.apimachinery.quantity import read_count
from webhook.apimachinery.releases import Release
from webhook.facts.train_job_pods.nodes_and_processes import (
    POD_PATH,
    RENDEZVOUS_PORT,
    ProcessesPerNode,
    gpu_count,
    step_of_job,
)
from webhook.facts.train_job_pods.releases import ADAPTERS, INJECTION
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.text.caches import IdentityKey
from webhook.typed.job_sets import ReplicatedJob
from webhook.typed.pods import Resources
from webhook.typed.view import ReadingContext

TUNE_RUN: Final = ["tune", "run"]
TORCHTUNE_PATHS: Final = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
"""Arguments that the runtime manages."""
_FULL: Final = "full_finetune_distributed"
_RANK: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
_IMAGE: Final = "FLUX_VIEW_IMAGE"
_DEFAULT_IMAGE: Final = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
_SHELL: Final = "/bin/bash"
_CONFIG: Final = "/etc/flux-config"


class ReplicatedJobPods(Struct):
    """The pods of one replicated job, while plugins and spec.trainer change them.

    Args:
        job: the merged job, to which `build_replicated_job` adds the changes in the other attributes.
        pod: the PodSpec.
        metadata: the metadata of the pods.
        containers, init_containers: copies of the containers.
        count: the number of pods.
        step: the step that the label of the job names, "" without the label.
        given: the unchanged job.
        settled: the container that already has the final variables of spec.trainer; None if no container has them
            yet.
    """

    job: JSON
    pod: dict[str, Any]
    metadata: dict[str, Any]
    containers: list[dict[str, Any]]
    init_containers: list[dict[str, Any]]
    count: int
    step: str
    given: JSON
    settled: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Return the name of the pod set."""
        return str(self.job.get("name") or "")

    def container(self, name: str) -> dict[str, Any] | None:
        """Return the first container of a name."""
        return next((container for container in self.containers if container.get("name") == name), None)

    def init_container(self, name: str) -> dict[str, Any] | None:
        """Return the first init container of a name."""
        return next((container for container in self.init_containers if container.get("name") == name), None)

    @property
    def node_containers(self) -> list[dict[str, Any]]:
        """Return the containers with the name `node`; a valid runtime has one such container."""
        return [container for container in self.containers if container.get("name") == "node"]

    @property
    def is_template_unchanged(self) -> bool:
        """Return whether the pod template is unchanged; the number of replicas may differ."""
        pod, metadata = get(self.given, POD_PATH, {}), get(self.given, (*POD_PATH[:-1], "metadata"), {})
        own, first = pod.get("containers", []), pod.get("initContainers", [])
        current = self.pod, self.metadata, self.containers, self.init_containers
        return current == (pod, metadata, own, first)

    def build_replicated_job(self) -> JSON:
        """Return the replicated job with the changed pod template."""
        template = self.job.get("template") or {}
        spec = template.get("spec") or {}
        lists = {"containers": self.containers, "initContainers": self.init_containers}
        pod = {**self.pod, **{name: listed for name, listed in lists.items() if listed}}
        pods = {**(spec.get("template") or {}), "spec": pod}
        if self.metadata:
            pods["metadata"] = self.metadata
        spec = {**spec, "parallelism": self.count, "completions": self.count, "template": pods}
        return {**self.job, "template": {**template, "spec": spec}}


def pods_of_replicated_job(job: ReplicatedJob, count: int) -> ReplicatedJobPods:
    """Return the pod set of a replicated job with a number of pods."""
    containers, init_containers = (
        [dict(container.json) for container in listed] for listed in (job.pod.containers, job.pod.init_containers)
    )
    metadata = dict(job.pod_template.metadata.json)
    given = job.json
    return ReplicatedJobPods(
        given, dict(job.pod.json), metadata, containers, init_containers, count, step_of_job(job), given
    )


@lru_cache(maxsize=64)
def cached_unchanged_job_of_runtime(job: IdentityKey, count: int, *, is_step: bool) -> JSON:
    """Return an unchanged replicated job of a runtime, cached until the runtime changes.

    Call this function only for jobs of ClusterTrainingRuntimes, which are few and contain no values of users.
    """
    given = {**job.value, "replicas": 1} if is_step else job.value
    return pods_of_replicated_job(ReplicatedJob(given, (), ReadingContext()), count).build_replicated_job()


class PluginInput(Struct, frozen=True, kw_only=True):
    """The input of plugins: the TrainJob, the spec of its runtime, the pod sets, processes and counted resources."""

    name: str
    runtime: str
    trainer: JSON
    spec: RuntimeSpec
    pod_sets: Sequence[ReplicatedJobPods]
    processes: ProcessesPerNode
    resources: Resources
    release: Release

    @property
    def first_node_address(self) -> str:
        """Return the address of the first node, to which the other nodes connect."""
        return f"{self.name}-node-0-0.{self.name}"

    @property
    def trainer_pod_set(self) -> ReplicatedJobPods | None:
        """Return the first pod set that is labelled as the trainer."""
        return next((pods for pods in self.pod_sets if pods.step == "trainer"), None)

    @property
    def number_of_training_pods(self) -> int:
        """Return the number of pods that train."""
        pods = self.trainer_pod_set
        return 1 if pods is None else pods.count

    @property
    def node_container(self) -> dict[str, Any] | None:
        """Return the container `node` of the trainer's pods, or None. Without spec.trainer, return None, because
        plugins then change nothing.
        """
        pods = None if self.trainer is None else self.trainer_pod_set
        return None if pods is None else pods.container("node")

    def set_env_of_node_container(self, own: Sequence[JSON] = ()) -> None:
        """Set the variables of spec.trainer in `node_container`, and then the variables `own` of the plugin."""
        pods, node = self.trainer_pod_set, self.node_container
        if pods is not None and node is not None and upsert_env(node, self.trainer.get("env", []), own):
            pods.settled = node

    def find_pod_set(self, name: str) -> ReplicatedJobPods | None:
        """Return the first pod set of a name."""
        return next((pods for pods in self.pod_sets if pods.name == name), None)


def build_env_list(values: Mapping[str, JSON]) -> list[JSON]:
    """Return a list of variables, each with a text or a source."""
    return [{"name": name, "value" if isinstance(value, str) else "valueFrom": value} for name, value in values.items()]


def apply_torch_plugin(plugin_input: PluginInput) -> JSON:
    """Set the variables of torch (torch.go), and return spec.trainer.

    A `tune run` command gets a recipe, and no variables for the address of the first node.
    """
    nodes = {
        "PET_NNODES": str(plugin_input.number_of_training_pods),
        "PET_NPROC_PER_NODE": plugin_input.processes.per_node,
        "PET_NODE_RANK": _RANK,
    }
    master = {"PET_MASTER_ADDR": plugin_input.first_node_address, "PET_MASTER_PORT": str(RENDEZVOUS_PORT)}
    trainer = plugin_input.trainer
    if (node := plugin_input.node_container) is not None:
        is_tuned = trainer.get("command") == TUNE_RUN
        own = build_env_list(nodes if is_tuned else {**nodes, **master})
        plugin_input.set_env_of_node_container(own)
        upsert_port(node, RENDEZVOUS_PORT)
        if is_tuned:
            trainer = {**trainer, "command": [*TUNE_RUN, *_words_after_tune_run(plugin_input)]}
    for container in _containers_for_env_injection(plugin_input):
        upsert_env(container, build_env_list({**nodes, **master}))
    return trainer


def _words_after_tune_run(plugin_input: PluginInput) -> Iterator[str]:
    """Yield the words that the torch plugin puts after `tune run`."""
    gpus, _ = gpu_count(plugin_input.resources)
    asked = plugin_input.processes.per_node
    count = read_count(asked)
    has_several_processes = (gpus if count is None else count) > 1
    if plugin_input.number_of_training_pods > 1 or has_several_processes:
        yield f"--rdzv_endpoint={plugin_input.first_node_address}:{RENDEZVOUS_PORT}"
    is_single = plugin_input.number_of_training_pods == 1 and (asked == "1" or gpus == 1)
    args = plugin_input.trainer.get("args", [])
    name, config = recipe_and_config(
        model_of_runtime(plugin_input.runtime),
        args,
        plugin_input.number_of_training_pods,
        is_single=is_single,
        release=plugin_input.release,
    )
    yield from (name, "--config", config)
    for pod_set in plugin_input.pod_sets:
        for container in pod_set.node_containers if pod_set.step == "trainer" else ():
            yield from overridden_paths(container.get("command", []))


def _containers_for_env_injection(plugin_input: PluginInput) -> Iterator[dict[str, Any]]:
    """Yield the containers that torch.envInjection names."""
    if plugin_input.release < INJECTION:
        return
    for target in plugin_input.spec.ml_policy.torch.env_injection.targets:
        pod_set = plugin_input.find_pod_set(target.job_name)
        if pod_set is not None:
            containers = (pod_set.container(name) or pod_set.init_container(name) for name in target.container_names)
            yield from (container for container in containers if container is not None)


def apply_jax_plugin(plugin_input: PluginInput) -> None:
    """Set the variables of JAX, as Trainer's jax.go does."""
    if (node := plugin_input.node_container) is not None:
        address = f"{plugin_input.first_node_address}:{RENDEZVOUS_PORT}"
        values = {
            "JAX_NUM_PROCESSES": str(plugin_input.number_of_training_pods),
            "JAX_PROCESS_ID": _RANK,
            "JAX_COORDINATOR_ADDRESS": address,
        }
        upsert_env(node, build_env_list(values))
        upsert_port(node, RENDEZVOUS_PORT)


def apply_xgboost_plugin(plugin_input: PluginInput) -> None:
    """Set the variables of XGBoost with one worker for each GPU, as Trainer's xgboost.go does."""
    if (node := plugin_input.node_container) is not None:
        workers = plugin_input.number_of_training_pods * (plugin_input.processes.count or 1)
        port, number = str(RENDEZVOUS_PORT), str(workers)
        values = {"DMLC_TRACKER_URI": plugin_input.first_node_address, "DMLC_TRACKER_PORT": port, "DMLC_TASK_ID": _RANK}
        upsert_env(node, build_env_list({**values, "DMLC_NUM_WORKER": number}))
        upsert_port(node, RENDEZVOUS_PORT)


def apply_mpi_plugin(plugin_input: PluginInput) -> None:
    """Add SSH keys to all nodes, and the file of hosts to the launcher (mpi.go)."""
    path = plugin_input.spec.ml_policy.mpi.ssh_auth_mount_path
    for pod_set in plugin_input.pod_sets:
        if pod_set.name not in ("node", "launcher"):
            continue
        upsert_volumes(pod_set.pod, _volume_of_ssh_keys(plugin_input.name))
        for node in pod_set.node_containers:
            upsert_mounts(node, {"name": "mpi-ssh-auth", "mountPath": path})
        if pod_set.name == "launcher":
            _apply_mpi_to_launcher(plugin_input, pod_set)


def _apply_mpi_to_launcher(plugin_input: PluginInput, launcher: ReplicatedJobPods) -> None:
    items = [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
    hosts = {"name": f"{plugin_input.name}-mpi-hostfile", "items": items}
    upsert_volumes(launcher.pod, {"name": "mpi-hostfile", "configMap": hosts})
    values = {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": plugin_input.processes.per_node,
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }
    for node in launcher.node_containers:
        upsert_mounts(node, {"name": "mpi-hostfile", "mountPath": "/etc/mpi"})
        upsert_env(node, build_env_list(values))


def _volume_of_ssh_keys(name: str) -> JSON:
    items = [
        {"key": "ssh-privatekey", "path": "id_rsa", "mode": 0o640},
        {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o644},
        {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644},
    ]
    secret = {"secretName": f"{name}-mpi-ssh-auth", "defaultMode": 0o400, "items": items}
    return {"name": "mpi-ssh-auth", "secret": secret}


def add_pod_group_metadata(plugin_input: PluginInput) -> None:
    """Set the group of the pods (coscheduling.go and volcano.go)."""
    policy = plugin_input.spec.pod_group_policy
    for pod_set in plugin_input.pod_sets:
        if policy.coscheduling:
            _set_metadata_entry(pod_set, "labels", "scheduling.x-k8s.io/pod-group", plugin_input.name)
        if policy.volcano:
            _set_metadata_entry(pod_set, "annotations", "scheduling.k8s.io/group-name", plugin_input.name)


def _set_metadata_entry(pod_set: ReplicatedJobPods, field: str, name: str, value: str) -> None:
    pod_set.metadata[field] = {**(pod_set.metadata.get(field) or {}), name: value}


def entrypoint_config_map_name(name: str) -> str:
    """Return the name of the ConfigMap with the scripts. The volume with the scripts has the same name."""
    return f"{name}-flux-entrypoint"


def apply_flux_plugin(plugin_input: PluginInput) -> JSON:
    """Change the pods as EnforceMLPolicy does, and return spec.trainer with the entrypoint as command. The original
    command becomes an argument of the entrypoint.
    """
    trainer, config = plugin_input.trainer, entrypoint_config_map_name(plugin_input.name)
    if trainer is None:
        return trainer
    command, image = _original_command(plugin_input), _installer_image(plugin_input)
    for pod_set in plugin_input.pod_sets:
        if pod_set.name != "node":
            continue
        upsert_volumes(pod_set.pod, *_flux_volumes(plugin_input.name, config))
        install, scripts = _volume_mount("flux-install", "/mnt/flux"), _volume_mount(config, _CONFIG, readOnly=True)
        installer: dict[str, Any] = {
            "name": "flux-installer",
            "image": image,
            "command": [_SHELL, f"{_CONFIG}/init.sh"],
            "volumeMounts": [install, scripts],
        }
        pod_set.init_containers.append(installer)
        for node in pod_set.node_containers:
            upsert_mounts(
                node,
                install,
                _volume_mount("spack-install", "/opt/software"),
                scripts,
                _volume_mount("flux-curve", "/curve", readOnly=True),
                _volume_mount("shared-memory", "/dev/shm", readOnly=True),  # noqa: S108 - a path in a pod
            )
    others = {name: value for name, value in trainer.items() if name != "args"}
    return {**others, "command": [_SHELL, f"{_CONFIG}/entrypoint.sh", command]}


def _volume_mount(name: str, path: str, **others: bool) -> JSON:
    return {"name": name, "mountPath": path, **others}


def _flux_volumes(name: str, config: str) -> tuple[JSON, ...]:
    return (
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": config, "configMap": {"name": config, "defaultMode": 0o755}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": f"{name}-flux-curve", "defaultMode": 0o400}},
    )


def _original_command(plugin_input: PluginInput) -> str:
    """Return the original command as a text (getOriginalCommand)."""
    asked, node = plugin_input.trainer.get("command"), plugin_input.node_container
    own = node.get("command", []) if node else []
    words = [*(own if asked is None else asked), *(plugin_input.trainer.get("args") or [])]
    return " ".join(words).strip()


def _installer_image(plugin_input: PluginInput) -> str:
    """Return the image of the installer: the value of a variable, or the default."""
    own = plugin_input.node_container.get("env", []) if plugin_input.node_container else []
    images = [
        each.get("value", "") for each in (*own, *plugin_input.trainer.get("env", [])) if each.get("name") == _IMAGE
    ]
    return str(images[-1]) if images else _DEFAULT_IMAGE


def upsert_env(container: dict[str, Any], env: Sequence[JSON], later: Sequence[JSON] = ()) -> bool:
    """Add the variables of `env`, then of `later` (UpsertEnvVars). Return whether `later` replaces nothing in `env`."""
    return _upsert_entries(container, "env", env, "name", later)


def upsert_mounts(container: dict[str, Any], *mounts: JSON) -> None:
    """Add volume mounts; each replaces the mount with the same path (UpsertVolumeMounts)."""
    _upsert_entries(container, "volumeMounts", mounts, "mountPath")


def upsert_volumes(pod: dict[str, Any], *volumes: JSON) -> None:
    """Add volumes; each replaces the volume with the same name (UpsertVolumes)."""
    _upsert_entries(pod, "volumes", volumes, "name")


def upsert_port(container: dict[str, Any], port: int) -> None:
    """Add a port, in place of the first port that has the same number or no name (UpsertPort)."""
    made = list(container.get("ports", []))
    replaceable = (place for place, each in enumerate(made) if each.get("containerPort") == port or "name" not in each)
    place = next(replaceable, len(made))
    made[place : place + 1] = [{"containerPort": port}]
    container["ports"] = made


def _upsert_entries(
    target: dict[str, Any], field: str, added: Sequence[JSON], key: str, later: Sequence[JSON] = ()
) -> bool:
    """Add the entries of `added`, then of `later`. Return whether `later` replaces no entry of `added`.

    If all keys are new, entries are appended without a search, because an environment may have hundreds of variables.
    """
    before: Sequence[Mapping[str, JSON]] = target.get(field, ())
    asked, others = _keys_of_entries(added, key), _keys_of_entries(later, key)
    names = {*asked, *others}
    is_new = len(names) == len(asked) + len(others) and names.isdisjoint(_keys_of_entries(before, key))
    if names:
        target[field] = (
            [*before, *added, *later] if is_new else _entries_with_replacements(before, [*added, *later], key)
        )
    return is_new or set(others).isdisjoint(asked)


def _keys_of_entries(entries: Sequence[Mapping[str, JSON]], key: str) -> list[JSON]:
    """Return the keys of entries, None for an entry without the key."""
    try:
        return [each[key] for each in entries]
    except KeyError:
        return [each.get(key) for each in entries]


def _entries_with_replacements(before: Sequence[Mapping[str, JSON]], added: Sequence[JSON], key: str) -> list[JSON]:
    """Return entries with added entries. An added entry replaces only the first entry with the same key."""
    places = {each.get(key): place for place, each in reversed([*enumerate(before)])}
    made = list(before)
    for each in added:
        place = places.setdefault(each.get(key), len(made))
        made[place : place + 1] = [each]
    return made


def recipe_and_config(
    model: str, args: Sequence[str], nodes: int, *, is_single: bool, release: Release
) -> tuple[str, str]:
    """Return the recipe and its configuration (getRecipeAndConfig).

    `is_single`: whether one device on one node trains.
    """
    quantized = release >= ADAPTERS and is_adapter_quantized(args, release)
    adapted = release >= ADAPTERS and any("model.lora_attn_modules" in argument for argument in args)
    if nodes != 1:
        return _FULL, f"{model}_full_multinode" if nodes > 1 else f"{model}_full"
    where = "single_device" if is_single else "distributed"
    if quantized or adapted:
        suffix = "_qlora" if quantized else "_lora"
        return f"lora_finetune_{where}", f"{model}{suffix}{'_single_device' if is_single else ''}"
    return f"full_finetune_{where}", f"{model}_full{'_single_device' if is_single else ''}"


def model_of_runtime(runtime: str) -> str:
    """Return the model of a runtime: `llama3_2/1B` for `torchtune-llama3.2-1b`; "" for a name of another form."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def is_adapter_quantized(args: Sequence[str], release: Release) -> bool:
    """Return whether adapters are quantized. Before 2.3, the name of the argument is enough; since 2.3, the value of
    the argument counts.
    """
    if release < INJECTION:
        return any("model.quantize_base" in argument for argument in args) and not any(
            "model.use_dora" in argument for argument in args
        )
    return _is_argument_true(args, "model.quantize_base") and not _is_argument_true(args, "model.use_dora")


def _is_argument_true(args: Sequence[str], name: str) -> bool:
    pairs = (argument.partition("=") for argument in args)
    return any(name in key and equals and value.strip().lower() == "true" for key, equals, value in pairs)


def overridden_paths(command: Sequence[str]) -> Iterator[str]:
    """Yield the paths that the command of the runtime sets (extractOverridesFromRuntime)."""
    yield from (argument for argument in command if argument.split("=")[0] in TORCHTUNE_PATHS)
