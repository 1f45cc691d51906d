"""The packages of facts, with their modules, facts and checks.

No package registers itself when it is imported.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class FactPackage(Struct, frozen=True, kw_only=True):
    """One package of facts, or a single module.

    Args:
        module: the full name of the package or of the single module.
        facts: the names of the facts that `FACTS` of the module `fact` declares.
        groups: the groups of the checks that `CHECKS` of the module `checks` declares.
        rules: the modules with the rules of these groups, the most important first. A module of another package has its
            full name.
        fact: the module of the package that has `FACTS`.
        checks: the module of the package that has `CHECKS`.
        is_one_module: whether `module` is a single module, with the facts, the checks and the rules.
        judges_types: whether the checks also run for objects with values of wrong types.
    """

    module: str
    facts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    fact: str = "fact"
    checks: str = "checks"
    is_one_module: bool = False
    judges_types: bool = False

    @property
    def fact_module(self) -> str:
        """Return the full name of the module with the package's facts."""
        return self.module if self.is_one_module else f"{self.module}.{self.fact}"

    @property
    def checks_module(self) -> str:
        """Return the full name of the module with the package's checks."""
        return self.module if self.is_one_module else f"{self.module}.{self.checks}"

    @property
    def rule_modules(self) -> tuple[str, ...]:
        """Return the full names of the modules with the package's rules."""
        if self.is_one_module:
            return (self.module,)
        return tuple(name if "." in name else f"{self.module}.{name}" for name in self.rules)


PACKAGES: Final = (
    FactPackage(
        module="webhook.facts.pods",
        fact="pod_sets",
        facts=("podSets",),
        groups=("pod-resources", "pod-template", "workload-update"),
        rules=("pod_resources", "workload_update", "pod_template", "pod_template_scheduling"),
    ),
    FactPackage(
        module="webhook.facts.shapes",
        groups=("pod-template-shape", "object-shape", "manifest-shape"),
        rules=("object_shape", "job_specs", "selectors", "manifest_shape", "pods_in_files"),
        judges_types=True,
    ),
    FactPackage(
        module="webhook.facts.gpu",
        facts=("gpu", "portableGpu"),
        checks="gpu_requests",
        groups=("gpu-requests",),
        rules=("gpu_requests", "visible_devices"),
    ),
    FactPackage(
        module="webhook.facts.ray",
        checks="ray",
        groups=("ray",),
        rules=("ray", "serve_config", "gpus_of_groups", "releases"),
    ),
    FactPackage(
        module="webhook.facts.dra",
        facts=("dra",),
        groups=("device-claims", "resource-claims", "device-classes", "resource-slices", "nvidia-device-config"),
        rules=(
            "device_claims",
            "device_claims_classes",
            "device_claims_group",
            "resource_claims",
            "device_classes",
            "resource_slices",
            "nvidia_device_config",
        ),
    ),
    FactPackage(
        module="webhook.facts.nodes",
        groups=("node-devices", "node-pool", "shared-gpu", "tpu", "device-plugin"),
        rules=("node_devices", "node_pools", "shared_gpus", "shared_cards", "tpu_slices", "device_plugin"),
    ),
    FactPackage(module="webhook.facts.other_schedulers", checks="kai", groups=("kai",), rules=("kai", "kai_gangs")),
    FactPackage(module="webhook.facts.other_schedulers", checks="yunikorn", groups=("yunikorn",), rules=("yunikorn",)),
    FactPackage(module="webhook.facts.pod_prerequisites", groups=("pod-prerequisites",), is_one_module=True),
    FactPackage(module="webhook.facts.updates", groups=("update",), is_one_module=True),
    FactPackage(module="webhook.facts.priority_classes", facts=("priorities",), is_one_module=True),
    FactPackage(
        module="webhook.facts.trainer",
        facts=("trainer", "training"),
        groups=("train-job", "train-job-changes", "training-runtime"),
        rules=(
            "train_job",
            "train_job_claims",
            "webhook.facts.train_job_pods.train_job_patches",
            "train_job_steps",
            "train_job_processes_and_gpus",
            "train_job_gang",
            "train_job_torchtune",
            "train_job_launcher",
            "train_job_changes",
            "training_runtime_steps",
            "training_runtime",
        ),
    ),
    FactPackage(
        module="webhook.facts.jobset",
        groups=("job-set",),
        rules=(
            "names_and_keys",
            "job_set",
            "job_set_policies",
        ),
    ),
    FactPackage(
        module="webhook.facts.training_jobs",
        groups=("training-job",),
        rules=(
            "roles",
            "training_job",
            "elastic_and_rendezvous",
            "autoscaler",
            "processes",
            "mpi_launcher_slots_and_nodes",
        ),
    ),
    FactPackage(
        module="webhook.facts.launch",
        groups=("launch",),
        rules=("processes_and_slots", "nodes_and_ranks", "commands_of_kinds"),
    ),
    FactPackage(
        module="webhook.facts.model_servers",
        groups=("model-server",),
        rules=(
            "processes",
            "refused_arguments",
            "words",
            "server_groups",
            "clients",
            "listening",
            "server_checks",
            "services",
            "parts_of_pods",
        ),
    ),
    FactPackage(
        module="webhook.facts.serving_kinds",
        groups=("serving-kind",),
        rules=(
            "kserve_workers",
            "llm_inference_service",
            "knative",
            "worker_set",
            "inference_service",
            "model_claims",
            "checks",
        ),
    ),
    FactPackage(
        module="webhook.facts.kueue",
        facts=("kueue",),
        groups=("kueue-job", "kueue-never", "kueue-not-now", "kueue-unmanaged", "kueue-advice"),
        rules=(
            "job",
            "job_kinds",
            "job_serving",
            "job_topology",
            "never",
            "never_pod_groups",
            "never_topology_placement",
            "never_claims",
            "not_now",
            "unmanaged",
            "advice",
            "releases",
        ),
    ),
    FactPackage(
        module="webhook.facts.kueue",
        checks="queue_checks",
        groups=("kueue-queue",),
        rules=("queue_flavors", "queue_quota", "queue", "queue_nodes", "queue_workloads"),
    ),
    FactPackage(
        module="webhook.facts.sandbox",
        checks="sandbox",
        groups=("sandbox",),
        rules=("sandbox", "pools", "shard_patches"),
    ),
    FactPackage(module="webhook.facts.mesh", groups=("mesh",), is_one_module=True),
    FactPackage(module="webhook.facts.removed_versions", groups=("served-version",), is_one_module=True),
    FactPackage(
        module="webhook.facts.volcano",
        groups=(
            "volcano-job",
            "volcano-cron-job",
            "volcano-job-flow",
            "volcano-queue",
            "volcano-pod-group",
            "volcano-hyper-node",
            "volcano-pod",
            "volcano-scheduler",
        ),
        rules=(
            "job",
            "job_template",
            "job_names",
            "job_scheduling",
            "pod_group",
            "job_events_actions_and_exit_codes",
            "job_plugins",
            "pod",
            "job_dependencies_and_deadlocks",
            "job_commands",
            "cron_job",
            "job_flow",
            "queue",
            "queue_amounts",
            "hyper_node",
            "scheduler",
        ),
    ),
    FactPackage(
        module="webhook.facts.storage",
        groups=("storage",),
        rules=("volume_claims", "checkpoints", "shared_memory", "mounts"),
    ),
    FactPackage(
        module="webhook.facts.namespace_quota",
        checks="resource_quotas",
        groups=("namespace-quota", "gpu-quota"),
        rules=("resource_quotas", "limit_ranges"),
    ),
    FactPackage(module="webhook.facts.preemption", groups=("preemption",), is_one_module=True),
    FactPackage(
        module="webhook.facts.device_failures",
        checks="device_failures",
        groups=("device-failures",),
        rules=("restarts", "device_failures", "probes", "nccl"),
    ),
)
"""All packages. A package with several modules of checks has a row for each of these modules."""
