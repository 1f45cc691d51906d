"""The request of one AdmissionReview, with fields named as in k8s.io/api admission/v1/types.go, and the plurals of
kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

JSON: TypeAlias = Any
"""A decoded JSON value: dict, list, str, int, float, bool or None. No code may change the value in place."""


class Operation(StrEnum):
    """The verb of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"

    __hash__ = str.__hash__  # the hash of an Enum is a slow Python function


class Phase(StrEnum):
    """The admission phase: `mutate` sees the submitted object, `validate` the object to store."""

    MUTATE = "mutate"
    VALIDATE = "validate"


class GroupVersionKind(NamedTuple):
    """A kind with its group ("" for core) and version."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """Return `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


CORE_GROUP: Final = "core"
"""The core group in `Kind.group`, as in `Service.core`."""


def parse_group_kind(text: str) -> tuple[str, str]:
    """Return group and kind of `Job.batch`; `Pod` and `Pod.core` both mean the core group."""
    kind, _, group = text.partition(".")
    return "" if group == CORE_GROUP else group, kind


NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
POD: Final = GroupVersionKind("", "v1", "Pod")
CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label with the name of a Namespace, set by API servers since 1.22."""


class GroupVersionResource(NamedTuple):
    """A resource (plural, lower case) with its group and version."""

    group: str
    version: str
    resource: str


_NOTHING: Final[Mapping[str, tuple[str, ...]]] = {}


class UserInfo(NamedTuple):
    """The user of a request: authentication.k8s.io/v1 UserInfo."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = _NOTHING


NOBODY: Final = UserInfo()


MERGING_POLICY: Final = "policy"
OF_KUSTOMIZE: Final = ("patch", "component", "transformer", "kustomization")


class UnmergedPatch(NamedTuple):
    """What may add fields to an object of a file: a part of a kustomization, an object of Flux or Argo CD with patches,
    or a policy that merges this object into an object of the cluster. Only `--render` merges parts of kustomizations.

    Attributes:
        what: one of OF_KUSTOMIZE for a part of a kustomization, MERGING_POLICY for a policy, and the kind of an object
            of Flux or Argo CD.
        file: the file with the part or the policy.
        fields: the names of the fields, and the keys of maps; None if the part was not read.
    """

    what: str
    file: str
    fields: frozenset[str] | None = None


@dataclass(slots=True, kw_only=True)  # frozen objects take twice as long to create
class Attributes:
    """One admission request. No code may change a request.

    Attributes:
        object: None on DELETE.
        old_object: None on CREATE and CONNECT.
        is_plain: whether claimgate made the request for an object of a file, so no API server chose the version.
        is_of_tests: whether the object is from a folder of tests, or from a file for old releases.
        unmerged_patches: what kustomizations may add to the object of a file, so the object may be incomplete.
        is_decoded: whether an API server sent the request, so the fields of built-in kinds have the right types.
        name: "" on CREATE with `generateName`.
        namespace: "" for cluster-scoped objects.
        sub_resource: "" for the object itself.
        request_kind, request_resource: the kind and the resource that the client sent, before conversion.
    """

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    operation: Operation
    sub_resource: str = ""
    request_kind: GroupVersionKind
    request_resource: GroupVersionResource
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = NOBODY
    object: JSON = None
    old_object: JSON = None
    options: JSON = None
    dry_run: bool = False
    is_decoded: bool = field(default=False, compare=False)
    is_plain: bool = field(default=False, compare=False)
    is_of_tests: bool = field(default=False, compare=False)
    unmerged_patches: tuple[UnmergedPatch, ...] = field(default=(), compare=False)

    def without_objects(self) -> Attributes:
        """Return the request without its objects and options."""
        return replace(self, object=None, old_object=None, options=None)


def is_user_known(attributes: Attributes) -> bool:
    """Return whether the user of a request is known."""
    return not attributes.is_plain or attributes.user_info is not NOBODY


def controller_name(obj: JSON) -> str:
    """Return `Kind/name` of the controller that owns an object; "" without a readable reference."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    for each in owners if isinstance(owners, Sequence) else ():
        if isinstance(each, Mapping) and each.get("controller") is True:
            return f"{each.get('kind')}/{each.get('name')}"
    return ""


def plural_of_kind(kind: str) -> str:
    """Return the most likely resource name of a kind: its English plural in lower case.

    Source: apimachinery's UnsafeGuessKindToResource (pkg/api/meta/restmapper.go, v0.36).

    Examples:
        Pod -> pods, NetworkPolicy -> networkpolicies, Ingress -> ingresses, Endpoints -> endpoints
    """
    singular = kind.lower()
    if singular == "endpoints":
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"
