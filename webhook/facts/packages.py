"""Which packages of facts have what: the one list that names them. Nothing registers itself when it is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPackage:
    """One package of facts.

    Args:
        module: its name.
        facts: those that `FACTS` of its `fact.py` declares.
        groups: the groups of checks that `CHECKS` of its `checks.py` has.
        rules: the modules whose records are the rules of these groups, the most important first: by their names in the
            package, or in full where another package finds what breaks a rule.
        judges_types: its checks are about objects that are not of their types, which no others are asked about.
    """

    module: str
    facts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    judges_types: bool = False

    @property
    def rule_modules(self) -> tuple[str, ...]:
        """Return the full names of the modules with the package's rules."""
        return tuple(name if "." in name else f"{self.module}.{name}" for name in self.rules)


PACKAGES: Final = (
    FactPackage(
        module="webhook.facts.pods",
        facts=("podSets",),
        groups=("pod-resources", "pod-template", "workload-update"),
        rules=(
            "pod_resources",
            "pod_resources_at_pod_level",
            "workload_update",
            "pod_template",
            "pod_template_affinity",
            "pod_template_tolerations",
            "pod_template_labels_and_node_selector",
        ),
    ),
    FactPackage(
        module="webhook.facts.shapes",
        groups=("pod-template-shape", "object-shape"),
        rules=(
            "pod_template_shape",
            "object_shape",
        ),
        judges_types=True,
    ),
    FactPackage(
        module="webhook.facts.gpu",
        facts=("gpu", "portableGpu"),
        groups=("gpu-requests", "node-devices", "namespace-quota", "gpu-quota"),
        rules=(
            "node_devices",
            "namespace_quota",
            "gpu_requests",
            "gpu_quota",
        ),
    ),
    FactPackage(
        module="webhook.facts.ray",
        groups=("ray",),
        rules=(
            "ray",
            "num_gpus",
        ),
    ),
    FactPackage(
        module="webhook.facts.dra",
        facts=("dra",),
        groups=("device-claims", "resource-claims", "device-classes", "resource-slices", "nvidia-device-config"),
        rules=(
            "device_claims",
            "device_claims_existence",
            "device_claims_admin_access",
            "device_claims_classes",
            "device_claims_gpus",
            "device_claims_group",
            "resource_claims",
            "resource_claims_groups",
            "device_classes",
            "resource_slices",
            "nvidia_device_config",
        ),
    ),
    FactPackage(module="webhook.facts.scheduling", facts=("priorities",)),
    FactPackage(
        module="webhook.facts.trainer",
        facts=("trainer", "training"),
        groups=("train-job", "train-job-changes", "training-runtime"),
        rules=(
            "train_job",
            "train_job_managed_by",
            "train_job_runtime",
            "train_job_claims",
            "train_job_patch_managers_and_overrides",
            "webhook.facts.train_job_pods.train_job_patches",
            "webhook.facts.train_job_pods.train_job_tolerations",
            "train_job_steps",
            "train_job_runtime_args",
            "train_job_nodes",
            "train_job_gang",
            "train_job_volcano_queue_and_priority_class",
            "train_job_volumes",
            "train_job_images",
            "train_job_torchtune",
            "train_job_fields",
            "webhook.facts.train_job_pods.train_job_lost_claims",
            "webhook.facts.train_job_pods.train_job_ignored_resources",
            "train_job_launcher",
            "train_job_changes",
            "training_runtime_job_names",
            "training_runtime_immutable_fields",
            "training_runtime",
            "training_runtime_torch_address_and_plugin_variables",
            "train_job_processes_and_gpus",
            "training_runtime_ml_policy",
            "training_runtime_processes",
            "training_runtime_elastic_nodes",
            "training_runtime_gang_scheduling",
            "training_runtime_steps",
            "training_runtime_initializer_mounts",
            "training_runtime_env_injection",
            "training_runtime_flux",
            "training_runtime_fields",
            "train_job_mpi_worker_images_and_commands",
        ),
    ),
    FactPackage(
        module="webhook.facts.jobset",
        groups=("job-set",),
        rules=(
            "name_length",
            "job_set",
            "failures",
            "alpha_features",
            "coordinator",
            "volume_claims",
            "unknown_keys",
        ),
    ),
    FactPackage(
        module="webhook.facts.training_jobs",
        groups=("training-job",),
        rules=(
            "roles",
            "master_replicas",
            "chief",
            "parameter_servers",
            "containers_and_images",
            "training_job",
            "elastic_and_rendezvous",
            "autoscaler",
            "processes_world_size_and_gpus",
            "nproc_value",
            "more_nodes",
            "shared_memory",
            "mpi_launcher_slots_and_nodes",
            "operator_variables",
        ),
    ),
    FactPackage(
        module="webhook.facts.launch",
        groups=("launch",),
        rules=(
            "processes",
            "pods_and_nodes",
            "address",
            "ranks",
            "trainers",
            "variables",
            "mpi_ranks_and_slots",
        ),
    ),
    FactPackage(
        module="webhook.facts.kueue",
        facts=("kueue",),
        groups=("kueue-job", "kueue-never", "kueue-not-now", "kueue-unmanaged", "kueue-advice", "kueue-queue"),
        rules=(
            "job",
            "job_parallelism_and_completions",
            "job_pod_group_and_managed_label",
            "job_ray",
            "job_spark",
            "job_scale_and_groups",
            "job_shape",
            "job_topology",
            "never",
            "never_pod_sets",
            "never_pod_group",
            "not_now_pod_group",
            "never_topology_placement",
            "never_claims_and_classes",
            "never_extended_sources",
            "not_now_devices",
            "not_now",
            "not_now_inactive",
            "not_now_priority_class",
            "not_now_claim_templates",
            "not_now_quota_and_order",
            "unmanaged",
            "advice",
            "queue_covered_resources",
            "queue_flavors",
            "queue_too_many_entries",
            "queue_raw_gpu",
            "queue_quota_lending_borrowing",
            "queue_cohorts",
            "queue",
            "queue_fair_sharing",
            "queue_admission_checks",
            "queue_node_labels_taints_and_tolerations",
            "queue_topology_labels_and_levels",
            "queue_workloads",
            "queue_priority_boost",
            "queue_concurrent_admission",
        ),
    ),
    FactPackage(
        module="webhook.facts.sandbox",
        groups=("sandbox",),
        rules=(
            "sandbox",
            "pool_and_buffer",
            "shard_patches",
            "references",
            "claim_names",
            "windows",
        ),
    ),
    FactPackage(module="webhook.facts.mesh", groups=("mesh",), rules=("sidecars",)),
    FactPackage(module="webhook.facts.served_versions", groups=("served-version",), rules=("removed_versions",)),
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
            "job_tiers",
            "pod_group_tiers",
            "job_events_actions_and_exit_codes",
            "job_cpus",
            "job_plugins",
            "job_mpi_master",
            "job_volume_mounts_and_claims",
            "job_queue_and_capability",
            "pod_group_queue_and_capability",
            "pod_queue_and_capability",
            "job_dependencies_and_deadlocks",
            "job_scheduler_and_priority",
            "job_restart_policy",
            "job_ray",
            "cron_job",
            "job_flow",
            "queue_status",
            "queue_hierarchy",
            "queue_parent",
            "queue",
            "queue_depth",
            "queue_capability",
            "queue_guarantee",
            "queue_deserved",
            "queue_deletion",
            "pod_group",
            "hyper_node",
            "pod",
            "pod_group_annotation_and_existence",
            "scheduler",
            "job_ranks_host_files_and_ssh_keys",
            "job_plugin_variables",
            "job_partial_gang",
        ),
    ),
    FactPackage(
        module="webhook.facts.storage",
        groups=("storage",),
        rules=(
            "volume_claims",
            "storage_classes",
            "read_write_once",
            "node_local",
            "read_only",
            "rolling_updates",
            "checkpoints",
            "shared_memory",
            "sub_paths",
        ),
    ),
    FactPackage(
        module="webhook.facts.preemption",
        groups=("preemption",),
        rules=(
            "spot",
            "preemption",
            "priority_class",
        ),
    ),
    FactPackage(
        module="webhook.facts.device_failures",
        groups=("device-failures",),
        rules=(
            "restart_policies_and_evictions",
            "fail_index",
            "gangs_and_retries",
            "job_set_restarts",
            "node_taints_and_tolerations",
            "device_failures",
            "readiness_and_disruption",
            "liveness",
            "nccl",
        ),
    ),
)
"""The packages, a row each."""
