"""Whoever reads the id of a rule guesses its module from the names of the files: ARCHITECTURE.md, "The module of a rule"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from webhook.facts.registry import SHIPPED, Package, rules_of_package
from webhook.problems.rule import Rule
from webhook.suites.rule_homes import Homes

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "webhook" / "facts"
OF_ALL_RULES = {"__init__", "checks", "fact", "fact_values", "groups", "types"}
"""Modules that every package may have. None of them finds what breaks a rule."""
SMALL_WORDS = {"and", "of", "the", "for"}
MOST_EXCEPTIONS: Final = 72
"""Of about 640 rules: the home of eight in nine follows from the id by words alone."""
EXCEPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "pods/pod_resources.py": (
        "what is refused of one amount is decided in one place, whoever requests it",
        "pod-resources/pod-level-name",
    ),
    "pods/pod_template_placement.py": (
        "where pods are placed",
        "pod-template/affinity",
        "pod-template/toleration",
        "pod-template/node-selector",
        "pod-template/scheduling-gate",
        "pod-template/label",
    ),
    "gpu/gpu_quota.py": (
        "the other quota of the package is of a namespace",
        "gpu-quota/resource-name",
    ),
    "dra/device_claims_existence.py": (
        "asks the claims and templates that exist",
        "device-claims/admin-access",
    ),
    "trainer/train_job.py": (
        "another word that begins alike",
        "train-job/managed-by",
    ),
    "trainer/train_job_patch_managers.py": (
        "an override is what 2.0 calls a patch",
        "train-job/override-twice",
    ),
    "train_job_pods/train_job_patches.py": (
        "a patch loses the toleration",
        "train-job/lost-toleration",
    ),
    "trainer/train_job_steps.py": (
        "which steps the fields of spec.trainer reach",
        "train-job/runtime-args",
        "train-job/ignored-nodes",
    ),
    "trainer/train_job_gang.py": (
        "settings of the PodGroup of a gang",
        "train-job/volcano-queue",
        "train-job/priority-class",
    ),
    "trainer/train_job_volumes.py": (
        "of the volumes, claims and images of the generated pods",
        "train-job/claim-declared",
        "train-job/claim-source",
        "train-job/image-required",
        "train-job/unused-claim",
    ),
    "train_job_pods/job_set_builder.py": (
        "found while the JobSet is built",
        "train-job/lost-claim",
        "train-job/ignored-resources",
    ),
    "trainer/training_runtime.py": (
        "another module has a word of the rule",
        "training-runtime/job-name-length",
        "training-runtime/immutable-field",
    ),
    "trainer/training_runtime_ml_policy.py": (
        "fields of spec.mlPolicy",
        "training-runtime/processes",
        "training-runtime/elastic-nodes",
    ),
    "trainer/training_runtime_steps.py": (
        "the mount of an initializer, which is a step",
        "training-runtime/initializer-mount",
    ),
    "jobset/failures.py": (
        "actions of the failure policy",
        "job-set/restarted-replicas",
        "job-set/alpha-feature",
    ),
    "training_jobs/containers.py": (
        "of containers",
        "training-job/image-required",
    ),
    "training_jobs/elastic.py": (
        "fields of elasticPolicy",
        "training-job/rendezvous-settings",
    ),
    "training_jobs/processes_world_size_and_gpus.py": (
        "what the processes of a job share and count",
        "training-job/nproc-value",
        "training-job/more-nodes-than-pods",
        "training-job/shared-memory",
    ),
    "training_jobs/mpi_launcher_and_slots.py": (
        "of MPIJobs",
        "training-job/nodes-for-ranks",
        "training-job/other-version",
    ),
    "kueue/pod_group.py": (
        "of one group of pods, in two groups of rules",
        "kueue-never/pod-group-differs",
        "kueue-not-now/pod-group-incomplete",
    ),
    "kueue/never_claims.py": (
        "devices of claims",
        "kueue-never/extended-sources",
        "kueue-never/unmapped-class",
        "kueue-not-now/devices-missing",
    ),
    "kueue/queue_flavors_and_resources.py": (
        "of the list of flavors and resources of a queue",
        "kueue-queue/covered-twice",
        "kueue-queue/too-many",
        "kueue-queue/raw-gpu",
    ),
    "kueue/queue_quota_lending_borrowing.py": (
        "limits of lending and borrowing",
        "kueue-queue/limit-without-cohort",
    ),
    "kueue/queue.py": (
        "a field of the ClusterQueue",
        "kueue-queue/check-flavor",
    ),
    "kueue/queue_node_labels_and_taints.py": (
        "fields of a ResourceFlavor",
        "kueue-queue/toleration",
        "kueue-queue/topology-label",
        "kueue-queue/flavor-unused",
    ),
    "kueue/queue_workloads.py": (
        "an annotation of a Workload",
        "kueue-queue/priority-boost",
    ),
    "sandbox/sandbox.py": (
        "fields of a BatchSandbox",
        "sandbox/ignored-with-pool",
        "sandbox/unused-patches",
        "sandbox/limits-choose-no-pool",
    ),
    "sandbox/pool.py": (
        "a field of a Pool",
        "sandbox/buffer-range",
    ),
    "volcano/job.py": (
        "another module has a word of the rule",
        "volcano-job/no-pods",
        "volcano-job/template-refused",
    ),
    "volcano/job_events_and_exit_codes.py": (
        "the action that follows an event",
        "volcano-job/action",
    ),
    "volcano/job_plugins.py": (
        "the master of the plugin mpi",
        "volcano-job/mpi-master",
    ),
    "volcano/queue_of_jobs_pods_and_groups.py": (
        "the capability of the queue",
        "volcano-job/capability",
        "volcano-pod-group/capability",
        "volcano-pod/capability",
    ),
    "volcano/job_dependencies.py": (
        "what comes of dependencies",
        "volcano-job/deadlock",
    ),
    "volcano/pod_group.py": (
        "of the PodGroup, whose queue changes",
        "volcano-pod-group/queue-changed",
    ),
    "volcano/pod.py": (
        "of the Pod, which names a group",
        "volcano-pod/group-annotation",
        "volcano-pod/group-exists",
    ),
    "volcano/job_ranks_hosts_and_keys.py": (
        "of the commands of a job",
        "volcano-job/plugin-variable",
        "volcano-job/partial-gang",
    ),
    "preemption/priority.py": (
        "of priority classes",
        "preemption/never-preempts",
    ),
    "device_failures/restart_and_failure_policies.py": (
        "fields of a failure policy",
        "device-failures/fail-index",
        "device-failures/evictions-count",
    ),
    "device_failures/gangs_and_retries.py": (
        "who restarts the whole gang",
        "device-failures/job-set-restarts",
    ),
}
"""Modules, why their rules have other words, and these rules."""


def stem(word: str) -> str:
    """A word without its ending, so that `tolerations` and `toleration` are one word."""
    word = re.sub("ies$", "y", word)
    word = re.sub("(?<=..)(?<!s)s$", "", word)
    return re.sub("(?<=....)(ation|ion|ing|ed|e)$", "", word)


def words_of(name: str) -> list[str]:
    return [word for word in re.split("[-_]", name) if word not in SMALL_WORDS]


def is_same(one: str, other: str) -> bool:
    """Whether two words are one, or one is the beginning or the end of the other, such as `tune` and `torchtune`."""
    return any(
        stem(word) == stem(longer)
        or (len(stem(word)) >= 4 and longer.startswith(stem(word)))
        or (len(word) >= 4 and longer.endswith(word) and len(longer) - len(word) > 2)
        for word, longer in ((one, other), (other, one))
    )


def has(word: str, words: list[str]) -> bool:
    return any(is_same(word, other) for other in words)


@cache
def modules_of(package: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (FACTS / package).glob("*.py") if path.stem not in OF_ALL_RULES))


def ranks(rule: Rule, folder: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """How little the name of each module of a folder fits a rule, and its path: the smallest fits best."""
    group, name = map(words_of, rule.id.split("/"))
    wanted = [word for word in name if not has(word, group)]
    folder_words = [] if folder == "train_job_pods" else [*words_of(folder), folder]
    for module in modules_of(folder):
        words = words_of(module)
        is_of_group = all(has(word, [*folder_words, *words]) for word in group) or folder == "".join(group)
        shared = [word for word in wanted if has(word, words)]
        others = [word for word in words if not has(word, group) and not has(word, wanted)]
        first = wanted.index(shared[0]) if shared else len(wanted)
        yield (not is_of_group, -len(shared), len(others), first), f"{folder}/{module}.py"


def guesses(rule: Rule, package: Package) -> list[str]:
    """The modules that a reader would open first; several where their names fit as well."""
    folder = package.module.rsplit(".", 1)[1]
    folders = [folder, "train_job_pods"] if folder == "trainer" else [folder]
    ranked = sorted(rank for each in folders for rank in ranks(rule, each))
    return [module for fit, module in ranked if fit == ranked[0][0]]


@cache
def misses() -> dict[str, list[str]]:
    """The modules whose rules are not found where their ids say, with the names of these rules."""
    homes, missed = Homes(), dict[str, list[str]]()
    for package in SHIPPED.packages:
        for rule in rules_of_package(package):
            (home,) = homes.of_checks(rule)
            module = str(Path(home.file).relative_to("webhook/facts"))
            if guesses(rule, package) != [module]:
                missed.setdefault(module, []).append(rule.id)
    return missed


def test_a_rule_is_found_where_its_id_says() -> None:
    """A new rule goes where its id says, or its module is named anew; few exceptions have their reason."""
    listed = {module: sorted(rules) for module, (_, *rules) in EXCEPTIONS.items()}
    assert {module: sorted(rules) for module, rules in misses().items()} == listed


def test_exceptions_are_few() -> None:
    assert sum(len(rules) - 1 for rules in EXCEPTIONS.values()) < MOST_EXCEPTIONS


@pytest.mark.parametrize("module", EXCEPTIONS)
def test_every_exception_has_its_reason(module: str) -> None:
    assert (FACTS / module).exists()
    assert EXCEPTIONS[module][0]
