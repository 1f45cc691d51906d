"""How KServe deploys an InferenceService: with Knative, or as a Deployment in Standard mode.

The mode in the status counts first, then the annotation, then the cluster's default in a ConfigMap. The ConfigMap may
be in another namespace than `kserve`, so the default is often not known.

Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/utils/utils.go GetDeploymentMode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from webhook.cluster.interest import Interest, ObjectScope
from webhook.facts.subject import Subject
from webhook.typed.fields import Text
from webhook.typed.objects import ConfigMap
from webhook.typed.serving import InferenceService
from webhook.typed.view import Typed

MODE: Final = "serving.kserve.io/deploymentMode"
KNATIVE: Final = "Knative"
STANDARD: Final = "Standard"
_MODES: Final[Mapping[str, str]] = {
    KNATIVE: KNATIVE,
    "Serverless": KNATIVE,
    STANDARD: STANDARD,
    "RawDeployment": STANDARD,
    "ModelMesh": "ModelMesh",
}
"""The modes, by their current and former names."""
_NAMESPACE: Final = "kserve"
_NAME: Final = "inferenceservice-config"
_LONGEST: Final = 16 * 1024
MODE_LOOKUP: Final = Interest(
    ConfigMap.gvk, frozenset(("data.deploy",)), scope=ObjectScope(namespace=_NAMESPACE, name=_NAME)
)


def deployment_mode(service: InferenceService, subject: Subject) -> str:
    """Return the mode of an InferenceService, "" if it is not known."""
    written = service.status.deployment_mode or service.metadata.annotations.get(MODE, "")
    return _MODES.get(written, "") or _MODES.get(_default_mode(subject), "")


class DeployConfig(Typed):
    """The key `deploy` of KServe's ConfigMap."""

    default_deployment_mode = Text()


def _default_mode(subject: Subject) -> str:
    held = subject.cluster_view().get_without_noting(ConfigMap.gvk, _NAMESPACE, _NAME)
    text = ConfigMap.of(held).data.get("deploy", "")
    try:
        return DeployConfig.of(json.loads(text[:_LONGEST])).default_deployment_mode
    except (ValueError, RecursionError):
        return ""
