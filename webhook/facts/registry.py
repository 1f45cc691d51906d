"""Which packages of facts have what: the one list that names them. Nothing registers itself when it is imported.

A package is imported when a policy asks for something of it, so that start-up costs what is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from webhook.attributes import JSON
from webhook.facts.fact import Fact
from webhook.problems.catalogue import Catalogue, LazyCatalogue, catalogue, rules_of
from webhook.problems.rule import Rule

if TYPE_CHECKING:
    from webhook.facts.check import Check

_MOST_KINDS: Final = 1000
"""Kinds of objects whose checks are listed: files may name any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package.

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
        """The full names of the modules with its rules."""
        return tuple(name if "." in name else f"{self.module}.{name}" for name in self.rules)


@dataclass(frozen=True, slots=True)
class Registry:
    """The packages that policies may ask for. `fact_names` are the facts that they have."""

    packages: tuple[Package, ...]
    fact_names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    _facts: dict[str, Fact] = field(default_factory=dict, compare=False, repr=False)
    _checks: dict[str, Sequence[Check]] = field(default_factory=dict, compare=False, repr=False)
    _of_kinds: dict[tuple[tuple[str, str], bool], ChecksOfKind] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fact_names", tuple(name for package in self.packages for name in package.facts))

    @property
    def groups(self) -> tuple[str, ...]:
        """Every group of checks."""
        return tuple(group for package in self.packages for group in package.groups)

    def fact(self, name: str) -> Fact:
        """A fact by its CEL name.

        Raises:
            KeyError: there is none.

        """
        known = self._facts.get(name)
        if known is None:
            known = self._facts[name] = _fact(self.packages, name)
        return known

    def checks(self, group: str) -> Sequence[Check]:
        """The checks of a group."""
        known = self._checks.get(group)
        if known is None:
            known = self._checks[group] = _checks(self.packages, group)
        return known

    def checks_of_kind(self, kind: tuple[str, str], *, is_deleted: bool) -> ChecksOfKind:
        """The checks that are asked about objects of a group and kind."""
        table = self._of_kinds.get((kind, is_deleted))
        if table is None:
            table = ChecksOfKind(self, kind, is_deleted=is_deleted)
            if len(self._of_kinds) < _MOST_KINDS:
                self._of_kinds[kind, is_deleted] = table
        return table

    def judges_types(self, groups: tuple[str, ...]) -> bool:
        """Whether checks of these groups are asked about objects that are not of their types."""
        return any(package.judges_types and not set(groups).isdisjoint(package.groups) for package in self.packages)

    def concerns(self, groups: tuple[str, ...], kind: tuple[str, str], obj: JSON) -> bool:
        """Whether checks of some groups may be about an object of a group and kind, of its types or not."""
        checks = [check for group in groups for check in self.checks(group) if check.is_about(kind, is_deleted=False)]
        return not checks or any(check.concerns is None or check.concerns(obj) for check in checks)

    def catalogue(self, groups: tuple[str, ...]) -> Catalogue:
        """The rules of some groups, whose modules are imported when somebody looks for a rule.

        Looking for one raises InputError for every mistake in them, and for an id that several rules have.
        """
        return LazyCatalogue(partial(_catalogue, self.packages, groups))


class ChecksOfKind(dict[str, "tuple[Check, ...]"]):
    """The checks of each group that are asked about objects of one kind; listed when a group is first asked for."""

    __slots__ = ("_is_deleted", "_kind", "_registry")

    def __init__(self, registry: Registry, kind: tuple[str, str], *, is_deleted: bool) -> None:
        super().__init__()
        self._registry = registry
        self._kind = kind
        self._is_deleted = is_deleted

    def __missing__(self, group: str) -> tuple[Check, ...]:
        checks = self._registry.checks(group)
        about = tuple(each for each in checks if each.is_about(self._kind, is_deleted=self._is_deleted))
        self[group] = about
        return about


def _fact(packages: tuple[Package, ...], name: str) -> Fact:
    for package in packages:
        if name in package.facts:
            declared: tuple[Fact, ...] = import_module(f"{package.module}.fact").FACTS
            return next(each for each in declared if each.name == name)
    raise KeyError(name)


def _checks(packages: tuple[Package, ...], group: str) -> Sequence[Check]:
    package = next(package for package in packages if group in package.groups)
    declared: tuple[Check, ...] = import_module(f"{package.module}.checks").CHECKS
    return tuple(check for check in declared if check.group == group)


@cache
def _catalogue(packages: tuple[Package, ...], groups: tuple[str, ...]) -> Catalogue:
    asked = [package for package in packages if not set(groups).isdisjoint(package.groups)]
    rules = catalogue(rule for package in asked for rule in rules_of_package(package))
    return {name: rule for name, rule in rules.items() if rule.group in groups}


def rules_of_package(package: Package) -> tuple[Rule, ...]:
    """The rules of a package, whose modules are imported for it."""
    return rules_of(*map(import_module, package.rule_modules))


SHIPPED: Final = Registry(
    (
        Package(
            module="webhook.facts.pods",
            facts=("podSets",),
            groups=("pod-resources", "pod-template", "workload-update"),
            rules=(
                "pod_resources",
                "pod_level_resources",
                "workload_update",
                "pod_template",
                "pod_template_placement",
            ),
        ),
        Package(
            module="webhook.facts.shapes",
            groups=("pod-template-shape", "object-shape"),
            rules=("pod_template_shape", "object_shape"),
            judges_types=True,
        ),
        Package(
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
        Package(module="webhook.facts.ray", groups=("ray",), rules=("ray", "num_gpus")),
        Package(
            module="webhook.facts.dra",
            facts=("dra",),
            groups=("device-claims", "resource-claims", "device-classes", "resource-slices", "nvidia-device-config"),
            rules=(
                "device_claims",
                "device_claims_existence",
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
        Package(module="webhook.facts.scheduling", facts=("priorities",)),
        Package(
            module="webhook.facts.trainer",
            facts=("trainer", "training"),
            groups=("train-job", "train-job-changes", "training-runtime"),
            rules=(
                "train_job",
                "train_job_runtime",
                "train_job_claims",
                "train_job_patch_managers",
                "webhook.facts.train_job_pods.train_job_patches",
                "train_job_steps",
                "train_job_gang",
                "train_job_volumes",
                "train_job_torchtune",
                "train_job_fields",
                "webhook.facts.train_job_pods.job_set_builder",
                "train_job_launcher",
                "train_job_changes",
                "training_runtime",
                "train_job_processes_and_gpus",
                "training_runtime_ml_policy",
                "training_runtime_gang_scheduling",
                "training_runtime_steps",
                "training_runtime_env_injection",
                "training_runtime_flux",
                "training_runtime_fields",
                "train_job_nodes",
                "train_job_mpi_workers",
            ),
        ),
        Package(
            module="webhook.facts.jobset",
            groups=("job-set",),
            rules=("name_length", "job_set", "failures", "coordinator", "volume_claims", "unknown_keys"),
        ),
        Package(
            module="webhook.facts.training_jobs",
            groups=("training-job",),
            rules=(
                "roles",
                "master_replicas",
                "chief",
                "parameter_servers",
                "containers",
                "training_job",
                "elastic",
                "autoscaler",
                "processes_world_size_and_gpus",
                "mpi_launcher_and_slots",
                "operator_variables",
            ),
        ),
        Package(
            module="webhook.facts.launch",
            groups=("launch",),
            rules=("processes", "pods_and_nodes", "address", "ranks", "trainers", "variables", "mpi_ranks_and_slots"),
        ),
        Package(
            module="webhook.facts.kueue",
            facts=("kueue",),
            groups=("kueue-job", "kueue-never", "kueue-not-now", "kueue-unmanaged", "kueue-advice", "kueue-queue"),
            rules=(
                "job",
                "job_parallelism_and_completions",
                "job_pod_labels",
                "job_ray",
                "job_spark",
                "job_scale_and_groups",
                "job_shape",
                "job_topology",
                "never",
                "pod_group",
                "never_topology_placement",
                "never_claims",
                "not_now",
                "not_now_priority_class",
                "not_now_claim_templates",
                "not_now_quota_and_order",
                "unmanaged",
                "advice",
                "queue_flavors_and_resources",
                "queue_quota_lending_borrowing",
                "queue",
                "queue_cohorts",
                "queue_node_labels_and_taints",
                "queue_topology_levels",
                "queue_workloads",
                "queue_concurrent_admission",
            ),
        ),
        Package(
            module="webhook.facts.sandbox",
            groups=("sandbox",),
            rules=("sandbox", "pool", "references", "shard_patches", "claim_names", "windows"),
        ),
        Package(module="webhook.facts.mesh", groups=("mesh",), rules=("sidecars",)),
        Package(module="webhook.facts.served_versions", groups=("served-version",), rules=("removed_versions",)),
        Package(
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
                "job_names",
                "job_tiers",
                "pod_group_tiers",
                "job_events_and_exit_codes",
                "job_template",
                "job_cpus",
                "job_plugins",
                "job_volume_mounts_and_claims",
                "queue_of_jobs_pods_and_groups",
                "job_dependencies",
                "checks",
                "job_scheduler_and_priority",
                "job_restart_policy",
                "job_ray",
                "cron_job",
                "job_flow",
                "queue_status",
                "queue_hierarchy",
                "queue_parent",
                "queue",
                "queue_capability",
                "queue_guarantee",
                "queue_deserved",
                "queue_deletion",
                "pod_group",
                "hyper_node",
                "pod",
                "scheduler",
                "job_ranks_hosts_and_keys",
            ),
        ),
        Package(
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
        Package(module="webhook.facts.preemption", groups=("preemption",), rules=("spot", "preemption", "priority")),
        Package(
            module="webhook.facts.device_failures",
            groups=("device-failures",),
            rules=(
                "restart_and_failure_policies",
                "gangs_and_retries",
                "node_taints_and_tolerations",
                "device_failures",
                "readiness_and_disruption",
                "liveness",
                "nccl",
            ),
        ),
    )
)
"""The packages, a row each."""
