"""What the controller of BatchSandboxes rejects or ignores, and the checks of all kinds of this package.

Any field of a BatchSandbox may be null, because the controller writes fields without omitempty.

In the CRDs of Sandbox and SandboxTemplate, a container may list a claim only once: the key of the list is the name. In
a Pod, a container may list a claim several times, with different requests.

A Windows sandbox is a Linux pod in which QEMU runs Windows; a volume with a special name marks the pod. Windows needs 2
CPUs, 4 GB of memory and 64 GB of disk; QEMU needs 2 GiB more memory. RAM_SIZE, CPU_CORES and DISK_SIZE are variables
of the image dockur/windows.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go,
strategy/{pool,task_scheduling}_strategy_default.go, server/opensandbox_server/services/k8s/windows_profile.py and
windows_common.py; kubernetes-sigs/agent-sandbox@2fd412d5 k8s/crds, x-kubernetes-list-map-keys; k8s.io/kubernetes v1.36
validateResourceClaimNames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import FieldPath
from webhook.facts.sandbox.pools import (
    REFERENCE_LOOKUPS,
    validate_batch_pool,
    validate_claim_references,
    validate_pool_template,
    validate_warm_pool_reference,
    warn_of_conflicting_pool_sizes,
    warn_of_fields_ignored_with_pool,
    warn_of_limits_without_requests,
)
from webhook.facts.sandbox.shard_patches import advise_unused_patches, validate_shard_devices, validate_shard_patches
from webhook.facts.sandbox.types import (
    SANDBOX,
    SANDBOX_ADVICE,
    BatchSandbox,
    Pool,
    Sandbox,
    SandboxClaim,
    SandboxTemplate,
    SandboxWarmPool,
)
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.rules.problem import Problem
from webhook.typed.fields import Amount
from webhook.typed.pods import Container, PodSpec, PodTemplate

PODS_REQUIRED: Final = SANDBOX.rule(
    "sandbox/pods-required",
    title="The BatchSandbox has neither a template nor a Pool",
    why="Without a template or a Pool, no pod is created.",
    function="scaleBatchSandbox",
)
TASKS_WITHOUT_TEMPLATE: Final = SANDBOX_ADVICE.rule(
    "sandbox/tasks-without-template",
    title="shardTaskPatches is set without taskTemplate",
    why="Without a task template no task starts, so the patches have no effect.",
    source=(
        "opensandbox-group/OpenSandbox 3bb6fad3 "
        "kubernetes/internal/controller/strategy/task_scheduling_strategy_default.go"
    ),
)
CLAIM_NAMED_ONCE: Final = SANDBOX.rule(
    "sandbox/claim-named-once",
    title="The container lists the same claim twice",
    why=(
        "In the CustomResourceDefinition, the name is the key of this list, so the API server refuses a second entry "
        "with the same name."
    ),
    refused_by="the API server",
    source="kubernetes-sigs/agent-sandbox 2fd412d5 k8s/crds",
    fails="create",
)
WINDOWS_DEVICE: Final = SANDBOX_ADVICE.rule(
    "sandbox/windows-device",
    title="The Windows sandbox requests a device",
    why="Windows runs in QEMU and cannot see the device. The device is reserved, so no other pod can use it.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 server/opensandbox_server/services/k8s/windows_profile.py",
)
WINDOWS_SIZE: Final = SANDBOX_ADVICE.rule(
    "sandbox/windows-size",
    title="The Windows sandbox is too small",
    why="Windows needs more resources to install and to start.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 server/opensandbox_server/services/k8s/windows_common.py",
    fails="start",
)
WINDOWS_RESTART_POLICY: Final = SANDBOX_ADVICE.rule(
    "sandbox/windows-restart-policy",
    title="The Windows sandbox does not restart its container",
    why="The installation of Windows exits several times, and continues only if the container restarts.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 server/opensandbox_server/services/k8s/windows_profile.py",
    fails="start",
)
_VOLUME: Final = "opensandbox-win-kvm"
_LIMITS: Final[Mapping[str, str]] = {"cpu": "2", "memory": "6Gi"}
_VARIABLES: Final[Mapping[str, str]] = {"CPU_CORES": "2", "RAM_SIZE": "4G", "DISK_SIZE": "64G"}
_POD_FIELDS: Final = ("poolRef", "template", "shardPatches")
_TASK_FIELDS: Final = ("taskTemplate", "shardTaskPatches")


def check_has_template_or_pool(batch: BatchSandbox) -> Iterator[Problem]:
    """Require a template or a Pool for the pods."""
    spec = batch.spec
    if not spec.pool_ref and not spec.has("template") and spec.replicas:
        message = "is not set, and spec.poolRef is not set either, so no pod is created"
        fix = "set spec.template, or name a Pool in spec.poolRef"
        yield PODS_REQUIRED.problem(spec.path("template"), message, fix)


def advise_ignored_fields(batch: BatchSandbox) -> Iterator[Problem]:
    """Warn of fields that the controller does not read: fields beside a Pool, patches without a replica, and task
    patches without a task template.
    """
    yield from warn_of_fields_ignored_with_pool(batch)
    yield from advise_unused_patches(batch)
    spec = batch.spec
    if spec.shard_task_patches and not spec.has("taskTemplate"):
        message = "is ignored because spec.taskTemplate is not set, so no task is started"
        yield TASKS_WITHOUT_TEMPLATE.problem(spec.path("shardTaskPatches"), message, "set a taskTemplate")


def validate_claim_names(sandbox: Sandbox) -> Iterator[Problem]:
    """Report containers that list a claim twice."""
    for container in sandbox.spec.pod_template.spec.all_containers():
        yield from _check_claims_with_repeated_names(container)


def _check_claims_with_repeated_names(container: Container) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, claim in enumerate(container.resources.claims):
        if claim.name and first.setdefault(claim.name, index) != index:
            message = (
                f"is already listed at index {first[claim.name]}, but a container of a Sandbox can list a claim only "
                "once"
            )
            fix = "remove one of the two entries, or declare the claim under two names in resourceClaims of the pod"
            yield CLAIM_NAMED_ONCE.problem(claim.path("name"), message, fix, claim.name)


def advise_windows(template: PodTemplate) -> Iterator[Problem]:
    """Warn of devices that Windows cannot see, small resources, and a restart policy that stops the installation."""
    pod = template.spec
    if not any(volume.name == _VOLUME for volume in pod.volumes):
        return
    for container in pod.containers:
        yield from _check_windows_device(container)
    if pod.containers:
        yield from _check_windows_size(pod.containers[0])
    yield from _check_windows_restart_policy(pod)


def _check_windows_device(container: Container) -> Iterator[Problem]:
    for name in container.resources.limits:
        if name == "gpu" or ("/" in name and "kubernetes.io/" not in name):
            message = (
                f"is not visible to Windows because a sandbox with volume `{_VOLUME}` runs Windows in QEMU, which gets "
                "no device of the pod"
            )
            fix = "remove the resource, so that other pods can use the device"
            yield WINDOWS_DEVICE.problem(container.resources.path("limits", name), message, fix)


def _check_windows_restart_policy(pod: PodSpec) -> Iterator[Problem]:
    if pod.restart_policy not in ("", "Always"):
        message = f"must be Always because a sandbox with volume `{_VOLUME}` installs Windows, which needs restarts"
        yield WINDOWS_RESTART_POLICY.problem(pod.path("restartPolicy"), message, "set Always", pod.restart_policy)


def _check_windows_size(container: Container) -> Iterator[Problem]:
    for name, least in _LIMITS.items():
        yield from _check_windows_minimum(
            container.resources.path("limits", name), container.resources.limits.get(name), least
        )
    for variable in container.env:
        if variable.name in _VARIABLES:
            yield from _check_windows_minimum(variable.path("value"), variable.value, _VARIABLES[variable.name])


def _check_windows_minimum(path: FieldPath, value: Amount | None, least: str) -> Iterator[Problem]:
    amount = None if value is None else quantity.read_quantity_or_none(value)
    if amount is not None and amount < quantity.parse_quantity(least):
        message = f"must be at least {least} because a sandbox with volume `{_VOLUME}` runs Windows"
        yield WINDOWS_SIZE.problem(path, message, f"set {least}", value)


def check_batch_sandbox(subject: Subject) -> Iterator[Problem]:
    """Check a BatchSandbox. An update is checked only if it changes pods or tasks, and gets no advice."""
    batch, old = subject.typed(BatchSandbox), subject.typed_old(BatchSandbox)
    if batch.spec.json and (not old or batch.spec.differs(old.spec, *_POD_FIELDS, *_TASK_FIELDS)):
        yield from check_has_template_or_pool(batch)
    if not old or batch.spec.differs(old.spec, *_POD_FIELDS):
        yield from validate_shard_patches(batch)
        if not batch.spec.pool_ref:
            yield from validate_shard_devices(subject)
    if not old:
        yield from advise_ignored_fields(batch)
        yield from warn_of_limits_without_requests(batch)
        yield from advise_windows(batch.spec.template)


def check_pool(subject: Subject) -> Iterator[Problem]:
    """Check a Pool."""
    pool, old = subject.typed(Pool), subject.typed_old(Pool)
    if not old or pool.spec.differs(old.spec):
        yield from validate_pool_template(pool)
        yield from warn_of_conflicting_pool_sizes(pool)
        if not old:
            yield from advise_windows(pool.spec.template)


def check_pool_reference(subject: Subject) -> Iterator[Problem]:
    """Check that the Pool of a BatchSandbox exists and fits."""
    batch, old = subject.typed(BatchSandbox), subject.typed_old(BatchSandbox)
    if not old or batch.spec.differs(old.spec):
        yield from validate_batch_pool(batch, subject.cluster_view())


def check_claim_references(subject: Subject) -> Iterator[Problem]:
    """Check that the template or warm pool of a SandboxClaim exists."""
    claim, old = subject.typed(SandboxClaim), subject.typed_old(SandboxClaim)
    if not old or claim.spec.differs(old.spec):
        yield from validate_claim_references(claim, subject.cluster_view())


def check_warm_pool_reference(subject: Subject) -> Iterator[Problem]:
    """Check that the template of a SandboxWarmPool exists."""
    pool, old = subject.typed(SandboxWarmPool), subject.typed_old(SandboxWarmPool)
    if not old or pool.spec.differs(old.spec):
        yield from validate_warm_pool_reference(pool, subject.cluster_view())


def check_agent_sandbox(subject: Subject) -> Iterator[Problem]:
    """Check a Sandbox or SandboxTemplate of agent-sandbox."""
    sandbox, old = subject.typed(Sandbox), subject.typed_old(Sandbox)
    if not old or sandbox.spec.differs(old.spec):
        yield from validate_claim_names(sandbox)


CHECKS: Final = (
    Check(group="sandbox", run=check_batch_sandbox, kinds=group_kinds_of_types(BatchSandbox)),
    Check(group="sandbox", run=check_pool, kinds=group_kinds_of_types(Pool)),
    Check(
        group="sandbox", run=check_pool_reference, kinds=group_kinds_of_types(BatchSandbox), lookups=REFERENCE_LOOKUPS
    ),
    Check(
        group="sandbox", run=check_claim_references, kinds=group_kinds_of_types(SandboxClaim), lookups=REFERENCE_LOOKUPS
    ),
    Check(
        group="sandbox",
        run=check_warm_pool_reference,
        kinds=group_kinds_of_types(SandboxWarmPool),
        lookups=REFERENCE_LOOKUPS,
    ),
    Check(group="sandbox", run=check_agent_sandbox, kinds=group_kinds_of_types(Sandbox, SandboxTemplate)),
)
