"""What every object of Kubernetes has."""

from __future__ import annotations

from typing import ClassVar

from webhook.attributes import NAMESPACE, GroupVersionKind
from webhook.typed.fields import Labels, Part, Parts, Text, Truth
from webhook.typed.view import Typed


class OwnerReference(Typed):
    """meta/v1 OwnerReference."""

    api_version = Text()
    kind = Text()
    name = Text()
    controller = Truth()


class Metadata(Typed):
    """meta/v1 ObjectMeta."""

    name = Text()
    generate_name = Text()
    namespace = Text()
    labels = Labels()
    annotations = Labels()
    deletion_timestamp = Text()
    owner_references = Parts(OwnerReference)

    @property
    def is_controlled(self) -> bool:
        """Whether a controller made the object, of another one."""
        return any(owner.controller for owner in self.owner_references)


class Object(Typed):
    """A whole object of a kind; `gvk` is what look-ups ask for."""

    gvk: ClassVar[GroupVersionKind]
    metadata = Part(Metadata)

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Its namespace, "" where it does not say so."""
        return self.metadata.namespace


class Namespace(Object):
    """core/v1 Namespace."""

    gvk = NAMESPACE
