"""Changes of the pods of a TrainJob by Trainer's plugins: variables, ports, volumes and mounts, and commands.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{torch/torch,jax/jax,xgboost/xgboost,mpi/mpi,
coscheduling/coscheduling,volcano/volcano}.go EnforceMLPolicy and EnforcePodGroupPolicy, pkg/constants; flux is
flux_pods.py's. What the alpha feature TrainJobStatus adds is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.attributes import JSON
from webhook.facts.train_job_pods.nodes import PORT
from webhook.facts.train_job_pods.pod_set import ReplicatedJobPods
from webhook.facts.train_job_pods.processes import ProcessesPerNode, gpu_count
from webhook.facts.train_job_pods.releases import INJECTION
from webhook.facts.train_job_pods.torchtune_recipe import (
    ENTRYPOINT,
    model_of_runtime,
    overridden_paths,
    recipe_and_config,
)
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.facts.train_job_pods.upsert import upsert_env, upsert_mounts, upsert_port, upsert_volumes
from webhook.releases import Release
from webhook.typed.pods import Resources

_RANK: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInput:
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
        """Return the address of the first node, which the others connect to."""
        return f"{self.name}-node-0-0.{self.name}"

    @property
    def trainer_pod_set(self) -> ReplicatedJobPods | None:
        """Return the first pod set that is labelled as the trainer."""
        return next((pods for pods in self.pod_sets if pods.step == "trainer"), None)

    @property
    def number_of_training_pods(self) -> int:
        """Return the number of pods that train."""
        return self.trainer_pod_set.count if self.trainer_pod_set else 1

    @property
    def node_container(self) -> dict[str, Any] | None:
        """Return its container `node` if there is a spec.trainer, without which plugins change nothing."""
        return self.trainer_pod_set.container("node") if self.trainer_pod_set and self.trainer is not None else None

    def set_env_of_node_container(self, own: Sequence[JSON] = ()) -> None:
        """Set the variables of spec.trainer in that container, and then those of a plugin."""
        of, node = self.trainer_pod_set, self.node_container
        if of is not None and node is not None and upsert_env(node, self.trainer.get("env", []), own):
            of.settled = node

    def find_pod_set(self, name: str) -> ReplicatedJobPods | None:
        """Return the first pod set of a name."""
        return next((pods for pods in self.pod_sets if pods.name == name), None)


def build_env_list(values: Mapping[str, JSON]) -> list[JSON]:
    """Return a list of variables, each with a text or a source."""
    return [{"name": name, "value" if isinstance(value, str) else "valueFrom": value} for name, value in values.items()]


def apply_torch_plugin(making: PluginInput) -> JSON:
    """Set the variables of torch (torch.go); a torchtune command gets its recipe instead of the first node's
    address.
    """
    nodes = {
        "PET_NNODES": str(making.number_of_training_pods),
        "PET_NPROC_PER_NODE": making.processes.per_node,
        "PET_NODE_RANK": _RANK,
    }
    master = {"PET_MASTER_ADDR": making.first_node_address, "PET_MASTER_PORT": str(PORT)}
    trainer = making.trainer
    if (node := making.node_container) is not None:
        is_tuned = trainer.get("command") == ENTRYPOINT
        own = build_env_list(nodes if is_tuned else {**nodes, **master})
        making.set_env_of_node_container(own)
        upsert_port(node, PORT)
        if is_tuned:
            trainer = {**trainer, "command": [*ENTRYPOINT, *_words_after_tune_run(making)]}
    for container in _containers_for_env_injection(making):
        upsert_env(container, build_env_list({**nodes, **master}))
    return trainer


def _words_after_tune_run(making: PluginInput) -> Iterator[str]:
    """Yield the words of a command after `tune run`."""
    gpus, _ = gpu_count(making.resources)
    asked = making.processes.per_node
    several = int(asked) > 1 if asked.isdecimal() else gpus > 1
    if making.number_of_training_pods > 1 or several:
        yield f"--rdzv_endpoint={making.first_node_address}:{PORT}"
    is_single = making.number_of_training_pods == 1 and (asked == "1" or gpus == 1)
    args = making.trainer.get("args", [])
    name, config = recipe_and_config(
        model_of_runtime(making.runtime),
        args,
        making.number_of_training_pods,
        is_single=is_single,
        release=making.release,
    )
    yield from (name, "--config", config)
    for pod_set in making.pod_sets:
        for container in pod_set.node_containers if pod_set.step == "trainer" else ():
            yield from overridden_paths(container.get("command", []))


def _containers_for_env_injection(making: PluginInput) -> Iterator[dict[str, Any]]:
    """Yield the containers that torch.envInjection names."""
    if making.release < INJECTION:
        return
    for target in making.spec.ml_policy.torch.env_injection.targets:
        pod_set = making.find_pod_set(target.job_name)
        if pod_set is not None:
            containers = (pod_set.container(name) or pod_set.init_container(name) for name in target.container_names)
            yield from (container for container in containers if container is not None)


def apply_jax_plugin(making: PluginInput) -> None:
    """Set the variables of JAX, as Trainer's jax.go does."""
    if (node := making.node_container) is not None:
        address = f"{making.first_node_address}:{PORT}"
        values = {
            "JAX_NUM_PROCESSES": str(making.number_of_training_pods),
            "JAX_PROCESS_ID": _RANK,
            "JAX_COORDINATOR_ADDRESS": address,
        }
        upsert_env(node, build_env_list(values))
        upsert_port(node, PORT)


def apply_xgboost_plugin(making: PluginInput) -> None:
    """Set the variables of XGBoost with one worker for each GPU, as Trainer's xgboost.go does."""
    if (node := making.node_container) is not None:
        workers = making.number_of_training_pods * (making.processes.count or 1)
        port, number = str(PORT), str(workers)
        values = {"DMLC_TRACKER_URI": making.first_node_address, "DMLC_TRACKER_PORT": port, "DMLC_TASK_ID": _RANK}
        upsert_env(node, build_env_list({**values, "DMLC_NUM_WORKER": number}))
        upsert_port(node, PORT)


def apply_mpi_plugin(making: PluginInput) -> None:
    """Add SSH keys to all nodes, and the file of hosts to the launcher (mpi.go)."""
    path = making.spec.ml_policy.mpi.ssh_auth_mount_path
    for pod_set in making.pod_sets:
        if pod_set.name not in ("node", "launcher"):
            continue
        upsert_volumes(pod_set.pod, _volume_of_ssh_keys(making.name))
        for node in pod_set.node_containers:
            upsert_mounts(node, {"name": "mpi-ssh-auth", "mountPath": path})
        if pod_set.name == "launcher":
            _apply_mpi_to_launcher(making, pod_set)


def _apply_mpi_to_launcher(making: PluginInput, launcher: ReplicatedJobPods) -> None:
    items = [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
    hosts = {"name": f"{making.name}-mpi-hostfile", "items": items}
    upsert_volumes(launcher.pod, {"name": "mpi-hostfile", "configMap": hosts})
    values = {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": making.processes.per_node,
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }
    for node in launcher.node_containers:
        upsert_mounts(node, {"name": "mpi-hostfile", "mountPath": "/etc/mpi"})
        upsert_env(node, build_env_list(values))


def _volume_of_ssh_keys(name: str) -> JSON:
    """Return the volume with the SSH keys."""
    items = [
        {"key": "ssh-privatekey", "path": "id_rsa", "mode": 0o640},
        {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o644},
        {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644},
    ]
    secret = {"secretName": f"{name}-mpi-ssh-auth", "defaultMode": 0o400, "items": items}
    return {"name": "mpi-ssh-auth", "secret": secret}


def add_pod_group_metadata(making: PluginInput) -> None:
    """Set the group of the pods (coscheduling.go and volcano.go)."""
    policy = making.spec.pod_group_policy
    for pod_set in making.pod_sets:
        if policy.coscheduling:
            _set_metadata_entry(pod_set, "labels", "scheduling.x-k8s.io/pod-group", making.name)
        if policy.volcano:
            _set_metadata_entry(pod_set, "annotations", "scheduling.k8s.io/group-name", making.name)


def _set_metadata_entry(pod_set: ReplicatedJobPods, field: str, name: str, value: str) -> None:
    pod_set.metadata[field] = {**(pod_set.metadata.get(field) or {}), name: value}
