"""The fields of every object of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from webhook.apimachinery.attributes import NAMESPACE, GroupVersionKind
from webhook.typed.collections import Entries
from webhook.typed.fields import Field, Labels, Part, Parts, Text
from webhook.typed.view import Typed


class OwnerReference(Typed):
    """meta/v1 OwnerReference."""

    api_version = Text()
    kind = Text()
    name = Text()

    @property
    def group_kind(self) -> tuple[str, str]:
        return self.api_version.rpartition("/")[0], self.kind


_MOST_OF_PREFIX: Final = 58
_SUFFIX: Final = "xxxxx"


class _LabelAndAnnotationKeys(Field[str]):
    """The keys of labels and annotations as one text, in which checks search for names."""

    def read(self, value: Any, owner: Typed) -> str:
        """Return the keys of the labels `value` and of the annotations, a line each."""
        annotations = owner.json.get("annotations")
        maps = [each for each in (value, annotations) if each and isinstance(each, dict)]
        owner.reading.deadline.spend(sum(map(len, maps)))
        return "\n".join([key for each in maps for key, text in each.items() if isinstance(text, str)])


class _ControllerKinds(Field[Sequence[tuple[str, str]]]):
    """Group and kind of the owners that control the object. Nearly every Pod has such an owner, and checks need only
    its group and kind.
    """

    def read(self, value: Any, owner: Typed) -> Sequence[tuple[str, str]]:
        """Return group and kind of the owner references `value` with `controller: true`."""
        if not isinstance(value, list):
            owner.reading.reject(value, owner.at)
            return ()
        return [
            (_text(each.get("apiVersion")).rpartition("/")[0], _text(each.get("kind")))
            for each in owner.reading.deadline.charge_for_items(value)
            if isinstance(each, dict) and each.get("controller") is True
        ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class Metadata(Typed):
    """meta/v1 ObjectMeta. `keys` are the keys of labels and annotations, one a line."""

    name = Text()
    generate_name = Text()
    namespace = Text()
    labels = Labels()
    annotations = Labels()
    creation_timestamp = Text()
    deletion_timestamp = Text()
    owner_references = Parts(OwnerReference)
    controller_kinds = _ControllerKinds(name="ownerReferences")
    keys = _LabelAndAnnotationKeys(name="labels")

    @property
    def longest_name(self) -> str:
        """Return the object's name, or a name as long as the API server generates from generateName; "" without both.

        A generated name has at most 58 characters of generateName and five more (k8s.io/apiserver v0.36
        pkg/storage/names/generate.go).
        """
        prefix = self.generate_name
        return self.name or (f"{prefix[:_MOST_OF_PREFIX]}{_SUFFIX}" if prefix else "")


class Condition(Typed):
    """meta/v1 Condition."""

    type = Text()
    status = Text()
    reason = Text()
    message = Text()


class Status(Typed):
    """The status of an object, with the conditions that its controller sets."""

    conditions = Parts(Condition)

    def condition(self, kind: str) -> Condition:
        """Return the condition of a type. If the status lacks the condition, return a condition that is not set."""
        absent = Condition({}, self.path("conditions"), self.reading, is_set=False)
        return next((condition for condition in self.conditions if condition.type == kind), absent)

    def is_true(self, kind: str) -> bool:
        return self.condition(kind).status == "True"


class Object(Typed):
    """A whole object of a kind. Lookups use `gvk`."""

    gvk: ClassVar[GroupVersionKind]
    api_version = Text()
    metadata = Part(Metadata)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Return the object's namespace, "" if it has none."""
        return self.metadata.namespace

    @property
    def version(self) -> str:
        """Return the version of the object's API: `v1beta1`."""
        return self.api_version.rpartition("/")[2]

    @property
    def labels(self) -> Entries[str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Entries[str]:
        return self.metadata.annotations


class Namespace(Object):
    """core/v1 Namespace."""

    gvk = NAMESPACE


class ConfigMap(Object):
    """core/v1 ConfigMap."""

    gvk = GroupVersionKind("", "v1", "ConfigMap")
    data = Labels()
