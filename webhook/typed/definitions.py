"""CustomResourceDefinitions of apiextensions.k8s.io/v1, and as they were before Kubernetes 1.22."""

from __future__ import annotations

from webhook.attributes import CRD
from webhook.typed.fields import Part, Parts, Text, Truth
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class CustomResourceNames(Typed):
    """apiextensions/v1 CustomResourceDefinitionNames."""

    kind = Text()


class CustomResourceVersion(Typed):
    """apiextensions/v1 CustomResourceDefinitionVersion."""

    name = Text()
    served = Truth()


class CustomResourceDefinitionSpec(Typed):
    """apiextensions/v1 CustomResourceDefinitionSpec. `version`: the only one, as v1beta1 could write it."""

    group = Text()
    names = Part(CustomResourceNames)
    versions = Parts(CustomResourceVersion)
    version = Text()


class CustomResourceDefinition(Object):
    """apiextensions/v1 CustomResourceDefinition."""

    gvk = CRD

    spec = Part(CustomResourceDefinitionSpec)

    def serves(self, group: str, version: str, kind: str) -> bool:
        """Return whether it defines the kind, and serves it in that version."""
        if (self.spec.group, self.spec.names.kind) != (group, kind):
            return False
        return self.spec.version == version or any(each.name == version and each.served for each in self.spec.versions)
