"""The kinds that checks of launchers read beside pod templates, with the fields that they read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import Part, Raw, ValueMap
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class PyTorchJobSpec(Typed):
    """kubeflow.org PyTorchJobSpec."""

    elastic_policy = Raw()
    pytorch_replica_specs = ValueMap()


class PyTorchJob(Object):
    """kubeflow.org PyTorchJob."""

    gvk = GroupVersionKind("kubeflow.org", "v1", "PyTorchJob")
    spec = Part(PyTorchJobSpec)
