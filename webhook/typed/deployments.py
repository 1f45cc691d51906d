"""apps/v1 Deployment, with the fields that are read of those that run controllers."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import Part
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed


class DeploymentSpec(Typed):
    """apps/v1 DeploymentSpec."""

    template = Part(PodTemplate)


class Deployment(Object):
    """apps/v1 Deployment."""

    gvk = GroupVersionKind("apps", "v1", "Deployment")
    spec = Part(DeploymentSpec)
