"""Fields of Ray's objects that the installed KubeRay drops, feature gates that are off, and releases of Ray.

The release is the tag of the operator's image in a Deployment of the files. Arguments and variables of the operator
set the gates.

Source: ray-project/kuberay@feeaf72fa and its tags: api/v1 types, pkg/features/features.go,
controllers/ray/utils/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery.releases import Release, parse_release, release_as_text
from webhook.facts.ray.groups import RAY
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import Deployment
from webhook.typed.pods import Container
from webhook.typed.ray import RayCluster, RayClusterSpec, RayJob, RayService
from webhook.typed.view import Typed

FIELD: Final = RAY.rule(
    "ray/field-of-later-release",
    title="The installed KubeRay does not know a field of the object",
    why="The CustomResourceDefinition of an older release drops the field, so it has no effect.",
    source="ray-project/kuberay@feeaf72fa ray-operator/apis/ray/v1",
    refused_by="nothing; the field is dropped",
    fails="silent",
)
DELETION_GATE: Final = RAY.rule(
    "ray/deletion-policy-gate",
    title="The RayJob has a deletionStrategy, but the feature gate is off",
    why="KubeRay 1.5 marks the RayJob as invalid and makes no pods unless RayJobDeletionPolicy is on.",
    source="ray-project/kuberay@feeaf72fa ray-operator/pkg/features/features.go",
)
UPGRADE_GATE: Final = RAY.rule(
    "ray/incremental-upgrade-gate",
    title="The RayService asks for an incremental upgrade, but the feature gate is off",
    why="KubeRay up to 1.6 treats this type as no upgrade, so it never starts the changed cluster.",
    source="ray-project/kuberay@feeaf72fa ray-operator/pkg/features/features.go",
    refused_by="nothing; the cluster is not upgraded",
    fails="silent",
)
TOKEN: Final = RAY.rule(
    "ray/token-release",
    title="rayVersion is too old for token authentication, or not set",
    why="KubeRay marks the object as invalid and makes no pods.",
    source="ray-project/kuberay@feeaf72fa ray-operator/controllers/ray/utils/validation.go",
    function="ValidateRayClusterSpec",
)
_IMAGE: Final = "kuberay/operator"
_DELETION: Final = "RayJobDeletionPolicy"
_UPGRADE: Final = "RayServiceIncrementalUpgrade"
_INCREMENTAL: Final = "NewClusterWithIncrementalUpgrade"
_TOKEN: Final[Release] = (2, 52)
_OF_CLUSTER: Final[tuple[tuple[str, Release], ...]] = (
    ("gcsFaultToleranceOptions", (1, 3)),
    ("managedBy", (1, 3)),
    ("authOptions", (1, 5)),
    ("upgradeStrategy", (1, 6)),
)
_OF_JOB: Final[tuple[tuple[str, Release], ...]] = (
    ("managedBy", (1, 3)),
    ("deletionStrategy.deletionRules", (1, 5)),
    ("preRunningDeadlineSeconds", (1, 6)),
)
_OF_SERVICE: Final[tuple[tuple[str, Release], ...]] = (
    ("upgradeStrategy", (1, 3)),
    ("upgradeStrategy.clusterUpgradeOptions", (1, 5)),
    ("managedBy", (1, 6)),
    ("suspend", (1, 7)),
)
"""Fields with the release that added them."""


@dataclass(frozen=True, slots=True)
class KubeRay:
    """The installed operator: its release, and its arguments and variables with feature gates as one text."""

    release: Release
    gates: str

    def has_gate(self, name: str) -> bool:
        """Return whether an argument or a variable turns on a feature gate."""
        return f"{name}=true" in self.gates


def check_ray_releases(subject: Subject) -> Iterator[Problem]:
    """Yield fields and settings that the installed KubeRay does not accept."""
    cluster = _cluster_spec(subject)
    yield from _check_token(cluster)
    installed = installed_kuberay(subject.cluster_view())
    if installed is None:
        return
    job, service = subject.typed(RayJob).spec, subject.typed(RayService).spec
    if subject.group_kind[1] == RayJob.gvk.kind:
        yield from _check_fields(job, _OF_JOB, installed)
        if job.has("deletionStrategy") and installed.release == (1, 5) and not installed.has_gate(_DELETION):
            message = f"KubeRay 1.5 has {_DELETION} off, so it rejects `deletionStrategy` and makes no pods"
            fix = f"turn the gate {_DELETION} on, or upgrade to 1.6"
            yield DELETION_GATE.problem(job.path("deletionStrategy"), message, fix)
    elif subject.group_kind[1] == RayService.gvk.kind:
        yield from _check_fields(service, _OF_SERVICE, installed)
        is_off = installed.release < (1, 7) and not installed.has_gate(_UPGRADE)
        if service.upgrade_strategy.type == _INCREMENTAL and is_off:
            message = (
                f"KubeRay {release_as_text(installed.release)} has {_UPGRADE} off, so it treats {_INCREMENTAL} as no "
                "upgrade, and a changed rayClusterConfig never reaches a cluster"
            )
            yield UPGRADE_GATE.problem(service.path("upgradeStrategy", "type"), message, f"turn the gate {_UPGRADE} on")
    yield from _check_fields(cluster, _OF_CLUSTER, installed)


def installed_kuberay(view: ClusterView) -> KubeRay | None:
    """Return the operator; None if the Deployments of the files state no release, or several."""
    return view.once(installed_kuberay, lambda: _installed_kuberay(view))


def _installed_kuberay(view: ClusterView) -> KubeRay | None:
    operators = {
        KubeRay(release, _gates(container))
        for deployment in view.copy_without_missing_objects().list_typed(Deployment)
        for container in deployment.spec.template.spec.containers
        if (release := _release_of_image(container.image)) is not None
    }
    return next(iter(operators)) if len(operators) == 1 else None


def _release_of_image(image: str) -> Release | None:
    name, _, tag = image.partition("@")[0].rpartition(":")
    return parse_release(tag) if name == _IMAGE or name.endswith(f"/{_IMAGE}") else None


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
        held = spec.json.get(above)
        is_written = isinstance(held, dict) and below in held if below else spec.has(above)
        if is_written and installed.release < release:
            message = (
                f"`{name}` came with KubeRay {release_as_text(release)}, and the CustomResourceDefinition of "
                f"{release_as_text(installed.release)} drops it"
            )
            yield FIELD.problem(spec.path(*name.split(".")), message, f"upgrade KubeRay, or remove `{name}`")


def _check_token(cluster: RayClusterSpec) -> Iterator[Problem]:
    version = cluster.ray_version
    release = parse_release(version)
    if cluster.auth_options.mode != "token" or (release is not None and release >= _TOKEN):
        return
    message = f"token authentication needs rayVersion 2.52.0 or later, and rayVersion is {version or 'not set'}"
    yield TOKEN.problem(cluster.path("authOptions", "mode"), message, "set rayVersion to the release of the image")
