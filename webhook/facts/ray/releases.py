"""The group of rules about Ray's kinds, and the rules about releases: fields that the installed KubeRay drops, feature
gates that are off, and releases of Ray.

The release of KubeRay is read from the tag of the operator's image in a Deployment of the files. The feature gates are
read from the operator's arguments and variables.

Source: ray-project/kuberay@feeaf72fa and its tags: api/v1 types, pkg/features/features.go,
controllers/ray/utils/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release, parse_release, release_as_text
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule, RuleGroup
from webhook.typed.cluster_objects import Deployment
from webhook.typed.pods import Container
from webhook.typed.ray import RayCluster, RayClusterSpec, RayJob, RayJobSpec, RayService, RayServiceSpec
from webhook.typed.view import Typed

RAY: Final = RuleGroup(
    "ray",
    refused_by="KubeRay's operator, in an event",
    source="ray-project/kuberay v1.4.2 ray-operator/controllers/ray/utils/validation.go",
    level="warn",
    fails="controller",
)
"""Objects of Ray that KubeRay's operator refuses or that cannot work."""
FIELD: Final = RAY.rule(
    "ray/field-of-later-release",
    title="The installed KubeRay does not know a field of the object",
    why="The CustomResourceDefinition of the release does not have the field, so the API server drops the field.",
    source="ray-project/kuberay@feeaf72fa ray-operator/apis/ray/v1",
    refused_by="nothing; the field is dropped",
    fails="silent",
)
DELETION_GATE: Final = RAY.rule(
    "ray/deletion-policy-gate",
    title="A field needs RayJobDeletionPolicy, but this feature gate is off",
    why="KubeRay marks the object as invalid and creates no pods unless RayJobDeletionPolicy is on.",
    source="ray-project/kuberay@feeaf72fa ray-operator/pkg/features/features.go",
    function="ValidateRayJobSpec",
)
UPGRADE_GATE: Final = RAY.rule(
    "ray/incremental-upgrade-gate",
    title="The RayService sets an incremental upgrade, but the feature gate is off",
    why="KubeRay up to 1.6 treats an incremental upgrade as no upgrade, and never starts the changed cluster.",
    source="ray-project/kuberay@feeaf72fa ray-operator/pkg/features/features.go",
    refused_by="nothing; the cluster is not upgraded",
    fails="silent",
)
TOKEN: Final = RAY.rule(
    "ray/token-release",
    title="rayVersion is too old for token authentication, or not set",
    why="KubeRay marks the object as invalid and creates no pods.",
    source="ray-project/kuberay@feeaf72fa ray-operator/controllers/ray/utils/validation.go",
    function="ValidateRayClusterSpec",
)
PRIORITY: Final = RAY.rule(
    "ray/priority-release",
    title="rayVersion is too old for the priority of a group, or not set",
    why="KubeRay marks the object as invalid and creates no pods.",
    source="ray-project/kuberay@feeaf72fa ray-operator/controllers/ray/utils/validation.go",
    function="validateWorkerGroupPriority",
)
INCREMENTAL_OPTIONS: Final = RAY.rule(
    "ray/incremental-upgrade-options",
    title="An incremental upgrade of a RayService lacks a required setting",
    why="KubeRay marks the RayService as invalid and creates no pods.",
    source="ray-project/kuberay@feeaf72fa ray-operator/controllers/ray/utils/validation.go",
    function="ValidateClusterUpgradeOptions",
)
OTHER_RELEASE: Final = RAY.rule(
    "ray/release-of-image",
    title="rayVersion differs from the release of the image",
    why="KubeRay chooses settings by rayVersion, and Ray in the image may not know these settings.",
    source="ray-project/kuberay@feeaf72fa ray-operator/controllers/ray/common/pod.go",
    level="advice",
    fails="silent",
)
_IMAGE: Final = "kuberay/operator"
_DELETION: Final = "RayJobDeletionPolicy"
_UPGRADE: Final = "RayServiceIncrementalUpgrade"
_INCREMENTAL: Final = "NewClusterWithIncrementalUpgrade"
_TOKEN: Final[Release] = (2, 52)
_KUBERNETES_TOKEN: Final[Release] = (2, 55)
_PRIORITY: Final[Release] = (2, 56)
_RAY_IMAGE: Final = re.compile(
    r"(?:docker\.io/)?rayproject/ray[a-z-]*:([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9rc.]).*"
)
_LONGEST_RELEASE: Final = 20
_RELEASE: Final = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_OF_CLUSTER: Final[tuple[tuple[str, Release], ...]] = (
    ("gcsFaultToleranceOptions", (1, 3)),
    ("managedBy", (1, 3)),
    ("autoscalerOptions.version", (1, 4)),
    ("authOptions", (1, 5)),
    ("upgradeStrategy", (1, 6)),
    ("historyServerOptions", (1, 7)),
    ("networkPolicy", (1, 7)),
    ("tlsOptions", (1, 7)),
)
_OF_JOB: Final[tuple[tuple[str, Release], ...]] = (
    ("deletionPolicy", (1, 3)),
    ("managedBy", (1, 3)),
    ("deletionStrategy", (1, 5)),
    ("preRunningDeadlineSeconds", (1, 6)),
)
_OF_SERVICE: Final[tuple[tuple[str, Release], ...]] = (
    ("upgradeStrategy", (1, 3)),
    ("upgradeStrategy.clusterUpgradeOptions", (1, 5)),
    ("managedBy", (1, 6)),
    ("suspend", (1, 7)),
)
"""Fields, each with the release of KubeRay that added the field."""
_DELETION_FIELDS: Final = {"deletionPolicy": ((1, 3), (1, 4)), "deletionStrategy": ((1, 5), None)}
"""Fields of a RayJob that need RayJobDeletionPolicy, each with its first and last release. The last release is None if
the newest KubeRay has the field.
"""
_SUSPENDS_GROUPS: Final[Release] = (1, 3)
_DELETION_ON_SINCE: Final[Release] = (1, 6)
_UPGRADE_ON_SINCE: Final[Release] = (1, 7)
"""The releases since which the gates _DELETION and _UPGRADE are on by default."""


@dataclass(frozen=True, slots=True)
class KubeRay:
    """The installed operator: its release, and its arguments and environment variables as one text, which sets feature
    gates.
    """

    release: Release
    gates: str

    def has_gate(self, name: str, on_since: Release) -> bool:
        """Return whether a feature gate is on. `on_since` is the first release in which the gate is on by default;
        `gates` overrides the default.
        """
        return f"{name}=true" in self.gates or (self.release >= on_since and f"{name}=false" not in self.gates)


def check_ray_releases(subject: Subject) -> Iterator[Problem]:
    """Report a rayVersion that is too old for a setting or differs from the release of the image. If the release of
    KubeRay is known, also report fields and settings that this release does not support.
    """
    cluster = _cluster_spec(subject)
    yield from _check_token(cluster)
    yield from _check_priority(cluster)
    yield from _advise_release_of_image(cluster)
    installed = installed_kuberay(subject.cluster_view())
    if installed is None:
        return
    job, service = subject.typed(RayJob).spec, subject.typed(RayService).spec
    if subject.group_kind[1] == RayJob.gvk.kind:
        yield from _check_fields(job, _OF_JOB, installed)
        yield from _check_deletion(job, installed)
    elif subject.group_kind[1] == RayService.gvk.kind:
        yield from _check_fields(service, _OF_SERVICE, installed)
        if service.upgrade_strategy.type == _INCREMENTAL and not installed.has_gate(_UPGRADE, _UPGRADE_ON_SINCE):
            message = (
                f"KubeRay {release_as_text(installed.release)} has {_UPGRADE} off, so KubeRay treats {_INCREMENTAL} as "
                "no upgrade, and a changed rayClusterConfig never reaches a cluster"
            )
            fix = "set NewCluster, or ask the administrator of KubeRay to turn the gate on"
            yield UPGRADE_GATE.problem(service.path("upgradeStrategy", "type"), message, fix)
        elif service.upgrade_strategy.type == _INCREMENTAL:
            yield from _check_incremental_upgrade(service)
    yield from _check_fields(cluster, _OF_CLUSTER, installed)
    yield from _check_suspended_groups(cluster, installed)


def _check_deletion(job: RayJobSpec, installed: KubeRay) -> Iterator[Problem]:
    """Report fields about deletion that the installed KubeRay rejects because a feature gate is off, or drops."""
    for name, (first, last) in _DELETION_FIELDS.items():
        if not job.has(name) or installed.release < first:
            continue
        if last is not None and installed.release > last:
            message = f"KubeRay has `{name}` only up to {release_as_text(last)}, so the CustomResourceDefinition of "
            message += f"{release_as_text(installed.release)} drops the field"
            yield _problem_of_field(job.path(name), message, "set deletionStrategy")
        elif not installed.has_gate(_DELETION, _DELETION_ON_SINCE):
            instead = "set spec.shutdownAfterJobFinishes instead"
            yield _problem_of_deletion_gate(job.path(name), f"`{name}`", instead, installed, remains=last is None)


def _check_suspended_groups(cluster: RayClusterSpec, installed: KubeRay) -> Iterator[Problem]:
    is_off = installed.release >= _SUSPENDS_GROUPS and not installed.has_gate(_DELETION, _DELETION_ON_SINCE)
    for group in cluster.worker_group_specs if is_off else ():
        if group.json.get("suspend") is True:
            instead = "remove suspend"
            yield _problem_of_deletion_gate(group.path("suspend"), "a suspended group", instead, installed)
            return


def _problem_of_deletion_gate(
    path: FieldPath, what: str, instead: str, installed: KubeRay, *, remains: bool = True
) -> Problem:
    """Return the problem of a field that needs the gate. `instead` is what the user can do without the gate. `remains`:
    whether later releases have the field too.
    """
    release = release_as_text(installed.release)
    message = f"KubeRay {release} has {_DELETION} off, so KubeRay rejects {what} and creates no pods"
    upgrade = " or to upgrade to 1.6" if remains and installed.release < _DELETION_ON_SINCE else ""
    fix = f"{instead}, or ask the administrator of KubeRay to turn the gate on{upgrade}"
    return DELETION_GATE.problem(path, message, fix)


def _check_incremental_upgrade(service: RayServiceSpec) -> Iterator[Problem]:
    """Report an incremental upgrade without a required setting."""
    strategy, asks = service.upgrade_strategy, f"{_INCREMENTAL} needs"
    if not service.ray_cluster_config.enable_in_tree_autoscaling:
        message = f"{asks} enableInTreeAutoscaling in rayClusterConfig, so KubeRay creates no pods"
        at = service.path("upgradeStrategy", "type")
        yield INCREMENTAL_OPTIONS.problem(at, message, "set enableInTreeAutoscaling: true")
    elif not strategy.has("clusterUpgradeOptions"):
        message = f"{asks} clusterUpgradeOptions, so KubeRay creates no pods"
        at = service.path("upgradeStrategy", "type")
        yield INCREMENTAL_OPTIONS.problem(at, message, "set clusterUpgradeOptions with a gatewayClassName")


def release_of_ray(cluster: RayClusterSpec) -> Release | None:
    """Return the release of Ray that a cluster states: rayVersion, or else the tag of an image; None if unknown."""
    if (release := parse_release(cluster.ray_version)) is not None:
        return release
    firsts = (next(iter(group.template.spec.containers), None) for group in cluster.groups())
    matches = (_RAY_IMAGE.fullmatch(container.image) for container in firsts if container is not None)
    return next((parse_release(match[1]) for match in matches if match is not None), None)


def installed_kuberay(view: ClusterView) -> KubeRay | None:
    """Return the operator; None if the Deployments of the files name no release, or several releases."""
    return view.once(installed_kuberay, lambda: _installed_kuberay(view))


def _installed_kuberay(view: ClusterView) -> KubeRay | None:
    operators = {
        KubeRay(release, _gates(container))
        for deployment in view.copy_without_missing_objects().list_typed(Deployment)
        for container in deployment.spec.template.spec.containers
        if (release := parse_image_name(container.image).release_of(_IMAGE)) is not None
    }
    return next(iter(operators)) if len(operators) == 1 else None


def _gates(container: Container) -> str:
    return ",".join((*container.words, *(variable.value for variable in container.env)))


def _cluster_spec(subject: Subject) -> RayClusterSpec:
    match subject.group_kind[1]:
        case RayJob.gvk.kind:
            return subject.typed(RayJob).spec.ray_cluster_spec
        case RayService.gvk.kind:
            return subject.typed(RayService).spec.ray_cluster_config
    return subject.typed(RayCluster).spec


def _check_fields(spec: Typed, fields: tuple[tuple[str, Release], ...], installed: KubeRay) -> Iterator[Problem]:
    for name, release in fields:
        above, _, below = name.partition(".")
        outer = spec.json.get(above)
        is_written = isinstance(outer, dict) and below in outer if below else spec.has(above)
        if is_written and installed.release < release:
            message = (
                f"`{name}` exists since KubeRay {release_as_text(release)}, so the CustomResourceDefinition of "
                f"{release_as_text(installed.release)} drops the field"
            )
            fix = f"remove `{name}`, or ask the administrator to upgrade KubeRay"
            yield _problem_of_field(spec.path(*name.split(".")), message, fix)


def _problem_of_field(path: FieldPath, message: str, fix: str) -> Problem:
    return FIELD.problem(path, message, fix)


def _check_token(cluster: RayClusterSpec) -> Iterator[Problem]:
    version, options = cluster.ray_version, cluster.auth_options
    release, is_of_kubernetes = parse_release(version), options.enable_k8s_token_auth
    needed = _KUBERNETES_TOKEN if is_of_kubernetes else _TOKEN
    if options.mode != "token" or (release is not None and release >= needed):
        return
    what = "enableK8sTokenAuth" if is_of_kubernetes else "token authentication"
    at = cluster.path("authOptions", "enableK8sTokenAuth" if is_of_kubernetes else "mode")
    yield _problem_of_release(TOKEN, at, what, needed, version)


def _check_priority(cluster: RayClusterSpec) -> Iterator[Problem]:
    release = parse_release(cluster.ray_version)
    for group in cluster.worker_group_specs:
        if group.priority and not (release is not None and release >= _PRIORITY):
            yield _problem_of_release(PRIORITY, group.path("priority"), "priority", _PRIORITY, cluster.ray_version)
            return


def _problem_of_release(rule: Rule, at: FieldPath, what: str, needed: Release, version: str) -> Problem:
    least = f"{release_as_text(needed)}.0"
    message = f"{what} needs rayVersion {least} or later, and rayVersion is {version or 'not set'}"
    return rule.problem(at, message, f"use an image of Ray {least} or later, and set rayVersion to its release")


def _advise_release_of_image(cluster: RayClusterSpec) -> Iterator[Problem]:
    version = cluster.ray_version
    if len(version) > _LONGEST_RELEASE or not _RELEASE.fullmatch(version):
        return
    for group in cluster.groups():
        container = next(iter(group.template.spec.containers), None)
        match = _RAY_IMAGE.fullmatch(container.image) if container is not None else None
        if match is not None and match[1] != version:
            name = f"group `{group.group_name}`" if group.group_name else "the head"
            message = f"is {version}, but the image of {name} has Ray {match[1]}"
            yield OTHER_RELEASE.problem(cluster.path("rayVersion"), message, f"write {match[1]}")
            return
