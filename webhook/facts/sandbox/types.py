"""The rule groups of this package, and typed views of the kinds of OpenSandbox and agent-sandbox.

Other packages check the pod templates of these kinds.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/config/crd/bases, kubernetes-sigs/agent-sandbox@2fd412d5
k8s/crds.
"""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Number, OptionalNumber, Part, Raw, Text, Values
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed

SANDBOX: Final = RuleGroup(
    "sandbox",
    refused_by="the controller, when it creates the pods",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go",
    fails="controller",
)
"""Objects with which the controllers of OpenSandbox and agent-sandbox fail, and fields that they silently ignore."""
SANDBOX_ADVICE: Final = RuleGroup(
    "sandbox",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go",
    level="warn",
    fails="silent",
)
"""Accepted fields without the effect that their name suggests."""

OPENSANDBOX: Final = "sandbox.opensandbox.io"
AGENTS: Final = "agents.x-k8s.io"
EXTENSIONS: Final = "extensions.agents.x-k8s.io"


class BatchSandboxSpec(Typed):
    """sandbox.opensandbox.io BatchSandboxSpec. Patches stay JSON, so that a null in a patch is kept."""

    replicas = Number(1)
    pool_ref = Text()
    template = Part(PodTemplate)
    shard_patches = Values()
    task_template = Raw()
    shard_task_patches = Values()


class BatchSandbox(Object):
    """sandbox.opensandbox.io BatchSandbox."""

    gvk = GroupVersionKind(OPENSANDBOX, "v1alpha1", "BatchSandbox")
    spec = Part(BatchSandboxSpec)


class PoolCapacity(Typed):
    """How many pods a Pool has and keeps ready."""

    buffer_min = OptionalNumber()
    buffer_max = OptionalNumber()
    pool_min = OptionalNumber()
    pool_max = OptionalNumber()


class PoolSpec(Typed):
    """The fields of a Pool."""

    template = Part(PodTemplate)
    capacity_spec = Part(PoolCapacity)


class Pool(Object):
    """sandbox.opensandbox.io Pool."""

    gvk = GroupVersionKind(OPENSANDBOX, "v1alpha1", "Pool")
    spec = Part(PoolSpec)


class SandboxSpec(Typed):
    """The fields of a Sandbox and a SandboxTemplate."""

    pod_template = Part(PodTemplate)


class Sandbox(Object):
    """agents.x-k8s.io Sandbox. A SandboxTemplate has the same fields."""

    gvk = GroupVersionKind(AGENTS, "v1beta1", "Sandbox")
    spec = Part(SandboxSpec)


class SandboxTemplate(Sandbox):
    """extensions.agents.x-k8s.io SandboxTemplate."""

    gvk = GroupVersionKind(EXTENSIONS, "v1beta1", "SandboxTemplate")


class Reference(Typed):
    """core/v1 LocalObjectReference."""

    name = Text()


class SandboxClaimSpec(Typed):
    """The spec of a SandboxClaim, which names a template (v1alpha1) or a warm pool (v1beta1)."""

    sandbox_template_ref = Part(Reference)
    warm_pool_ref = Part(Reference)


class SandboxClaim(Object):
    """extensions.agents.x-k8s.io SandboxClaim."""

    gvk = GroupVersionKind(EXTENSIONS, "v1beta1", "SandboxClaim")
    spec = Part(SandboxClaimSpec)


class SandboxWarmPoolSpec(Typed):
    """The spec of a SandboxWarmPool, which names a template."""

    sandbox_template_ref = Part(Reference)


class SandboxWarmPool(Object):
    """extensions.agents.x-k8s.io SandboxWarmPool."""

    gvk = GroupVersionKind(EXTENSIONS, "v1beta1", "SandboxWarmPool")
    spec = Part(SandboxWarmPoolSpec)
