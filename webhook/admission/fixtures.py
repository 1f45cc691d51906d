"""Makes admission requests from parsed files, without an API server. Each request has a view of the cluster.

A file has AdmissionReviews, bare requests or plain objects. For a plain object, this module makes the request that an
API server would send. The workload table has the resource names and scopes that cannot be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct

from webhook.admission import wire
from webhook.admission.decode import decode_request, decode_review
from webhook.apimachinery.attributes import (
    JSON,
    NAMESPACE,
    Attributes,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
    plural_of_kind,
)
from webhook.apimachinery.paths import FieldPath, get
from webhook.cluster import Cluster
from webhook.cluster.file_tree import FileTree, is_in_folder_of_tests
from webhook.cluster.known_kinds import is_cluster_scoped
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.cluster.lookup import describe_lookup
from webhook.errors import CallError
from webhook.facts.removed_versions import file_for_new_releases, is_for_old_release, is_removed
from webhook.input import documents
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.sent import as_sent_by_api_server
from webhook.settings.shared import Settings
from webhook.text.wording import shown
from webhook.workloads.rows import Row

DEFAULT_NAMESPACE: Final = "default"
"""kubectl's namespace for an object without a namespace."""
_PATCH: Final = "patch"
"""The field of a patch in a SyncSet or SelectorSyncSet of Hive (openshift/hive apis/hive/v1 SyncObjectPatch). Such a
patch has the apiVersion, kind and name of an object, but no metadata.
"""


_BETA: Final = f"{wire.GROUP}/v1beta1"

RowOf = Callable[[str, str], Row | None]
"""Returns the entry of a group and kind, as `Table.row`; None for unknown kinds."""


def is_review(value: JSON) -> bool:
    """Return whether the kind is AdmissionReview, of any version."""
    return isinstance(value, dict) and value.get("kind") == wire.KIND


def is_request(value: JSON) -> bool:
    """Return whether a value is the bare `request` of a review: it has an operation and no apiVersion."""
    return isinstance(value, dict) and "operation" in value and "apiVersion" not in value


def is_review_or_request(value: JSON) -> bool:
    """Return whether a value is a review or a bare request."""
    return is_review(value) or is_request(value)


def object_path(value: JSON) -> FieldPath:
    """Return the path of the object in a fixture document: `request.object` in a review."""
    if is_review(value):
        return ("request", "object")
    return ("object",) if is_request(value) else ()


def attributes_of_fixture(
    value: JSON,
    row: RowOf | None = None,
    *,
    operation: Operation = Operation.CREATE,
    namespace: str = DEFAULT_NAMESPACE,
    fills_defaults: bool = True,
) -> Attributes:
    """Return the attributes of one fixture document of any of the three forms.

    Args:
        value: an AdmissionReview, a bare request or a plain object, parsed.
        row: returns the entry of a kind in the workload table; None guesses plurals.
        operation: the operation on a plain object.
        namespace: the namespace of a plain object that has none.
        fills_defaults: whether a plain object gets the defaults of an API server.

    Raises:
        CallError: 400 if the value has another form, or cannot be decoded.
    """
    if is_review(value):
        return decode_review(_completed_review(value, row))
    if is_request(value):
        return decode_request(_completed_request(value, row))
    return attributes_of_object(value, row, operation=operation, namespace=namespace, fills_defaults=fills_defaults)


def note_on_v1beta1_review(value: JSON) -> str:
    """Return a note about a review of version v1beta1; "" for other fixtures.

    The fields of k8s.io/api/admission/v1beta1 are those of v1.
    """
    if not (is_review(value) and _is_v1beta1(value)):
        return ""
    return f"apiVersion `{_BETA}` of a review is read as `{wire.API_VERSION}`, the only version that a server answers"


def _is_v1beta1(review: Mapping[str, Any]) -> bool:
    return review.get("apiVersion") == _BETA


def _key_in_parentheses(value: JSON) -> str:
    # assertions of Chainsaw have such keys, at any depth
    values, keys = [value], list[str]()
    for each in values:  # grows
        if isinstance(each, dict):
            keys += each
            values += each.values()
        elif isinstance(each, list):
            values += each
    if "(" not in "".join(keys):  # nearly always
        return ""
    return next((key for key in keys if key[:1] == "(" and ")" in key), "")


def attributes_of_object(
    value: JSON,
    row: RowOf | None = None,
    *,
    operation: Operation = Operation.CREATE,
    old_object: JSON = None,
    namespace: str = DEFAULT_NAMESPACE,
    fills_defaults: bool = True,
) -> Attributes:
    """Return the attributes that an API server would send for this object, as far as the object determines them.

    The uid is derived from the name, so a fixture always gives the same answer. On DELETE the object goes into
    `old_object`. An object of a built-in kind gets an API server's form and defaults, unless it cannot be decoded.
    With `fills_defaults`, an object of a namespaced kind gets metadata.namespace.

    Args:
        value: an object with apiVersion and kind.
        row: as in `attributes_of_fixture`.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        old_object: the stored object, for UPDATE; by default the object itself.
        namespace: for a namespaced object without a namespace.
        fills_defaults: fill in the defaults of an API server.

    Raises:
        CallError: 400 if the object has no apiVersion or kind, or is an assertion of Chainsaw.
    """
    kind = group_version_kind_of_object(value)
    if key := _key_in_parentheses(value):
        raise CallError(400, "BadRequest", f"key `{key}` is an assertion of Chainsaw, not a field of an object")
    known = row(kind.group, kind.kind) if row else None
    resource = GroupVersionResource(kind.group, kind.version, known.resource if known else plural_of_kind(kind.kind))
    metadata = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
    name = _metadata_text(metadata, "name")
    namespaced = known.namespaced if known else not is_cluster_scoped(kind)
    where = (_metadata_text(metadata, "namespace") or namespace) if namespaced else ""
    if (kind.group, kind.kind) == ("", "Namespace"):
        where = name
    before_update = value if old_object is None else old_object
    now, before, is_decoded = _objects_as_sent(value, before_update, kind, fills_defaults=fills_defaults)
    if namespaced and fills_defaults:
        now, before = object_in_namespace(now, where), object_in_namespace(before, where)
    return Attributes(
        uid=str(uuid5(NAMESPACE_URL, f"{operation}/{kind.api_version}/{kind.kind}/{where}/{name}")),
        kind=kind,
        resource=resource,
        operation=operation,
        request_kind=kind,
        request_resource=resource,
        name=name,
        namespace=where,
        object=None if operation is Operation.DELETE else now,
        old_object=before if operation in (Operation.UPDATE, Operation.DELETE) else None,
        options=_options_of_operation(operation),
        is_decoded=is_decoded,
        is_plain=True,
    )


def with_defaults_filled_in(recorded: Attributes) -> Attributes:
    """Return a recorded request with an API server's defaults in its objects, except objects that cannot be decoded."""
    filled = (
        each and (_object_as_sent(each, recorded.kind, fills_defaults=True) or each)
        for each in (recorded.object, recorded.old_object)
    )
    return replace(recorded, object=next(filled), old_object=next(filled))


def _objects_as_sent(
    value: JSON, old: JSON, kind: GroupVersionKind, *, fills_defaults: bool
) -> tuple[JSON, JSON, bool]:
    # both objects as an API server sends them, and True; if an object cannot be decoded, both unchanged and False
    now = _object_as_sent(value, kind, fills_defaults=fills_defaults)
    before = now if old is value else _object_as_sent(old, kind, fills_defaults=fills_defaults)
    return (value, old, False) if now is None or before is None else (now, before, True)


def object_in_namespace(obj: JSON, namespace: str) -> JSON:
    """Return an object with a namespace, as an API server fills in the namespace of the request."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def _object_as_sent(value: JSON, kind: GroupVersionKind, *, fills_defaults: bool) -> JSON:
    sent = as_sent_by_api_server(value, kind)
    return with_api_defaults(sent, kind) if fills_defaults and sent is not None else sent


def group_version_kind_of_object(value: JSON) -> GroupVersionKind:
    """Return group, version and kind of an object.

    Raises:
        CallError: 400 if the value is not an object, or a field is missing.
    """
    if not isinstance(value, dict):
        expected = "expected an AdmissionReview, a request or an object"
        raise CallError(400, "BadRequest", f"{expected}, found `{shown(value)}`")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            expected = "expected an AdmissionReview, a request with an operation, or an object with apiVersion and kind"
            given = "none" if value.get(key) is None else f"`{shown(value[key])}`"
            raise CallError(400, "BadRequest", f"{key}: expected a string, found {given}; {expected}")
    if "metadata" not in value and isinstance(value.get(_PATCH), str):
        expected = "expected an object, found a patch of Hive, which names its object in `name`"
        raise CallError(400, "BadRequest", f"metadata: {expected}")
    group, _, version = value["apiVersion"].rpartition("/")
    return GroupVersionKind(group, version, value["kind"])


def _completed_review(review: Mapping[str, Any], row: RowOf | None) -> Mapping[str, Any]:
    # the review in version v1; missing fields of a hand-written review come from its object
    request = review.get("request")
    completed = (
        {"request": _completed_request(request, row)} if isinstance(request, dict) and request.get("operation") else {}
    )
    return {**review, **completed, **({"apiVersion": wire.API_VERSION} if _is_v1beta1(review) else {})}


def _completed_request(request: Mapping[str, Any], row: RowOf | None) -> Mapping[str, Any]:
    # missing kind, resource, namespace or uid come from the object
    if all(request.get(key) for key in ("uid", "kind", "resource")):
        return request
    obj = request.get("object") or request.get("oldObject")
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        return request
    derived = attributes_of_object(obj, row)
    kind = {"group": derived.kind.group, "version": derived.kind.version, "kind": derived.kind.kind}
    resource = {"group": kind["group"], "version": kind["version"], "resource": derived.resource.resource}
    missing = {"uid": derived.uid, "kind": kind, "resource": resource, "namespace": derived.namespace}
    return {**request, **{key: value for key, value in missing.items() if not request.get(key)}}


def _options_of_operation(operation: Operation) -> JSON:
    if operation is Operation.CONNECT:
        return None
    return {"apiVersion": "meta.k8s.io/v1", "kind": f"{operation.title()}Options"}


def _metadata_text(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


class SubmittedObject(Struct, frozen=True):
    """The request that an API server would send, with the view of the cluster for its file."""

    attributes: Attributes
    cluster: Cluster


class Submissions:
    """The objects of files, each with a view of the cluster; objects of one file and namespace share a view."""

    def __init__(self, files: FileTree, row: RowOf, *, namespace: str = "", fills_defaults: bool = True) -> None:
        """`namespace` is for objects without a namespace, and `fills_defaults` for plain objects."""
        self._files = files
        self._row = row
        self._namespace = namespace
        self._fills_defaults = fills_defaults
        self._views: tuple[str, dict[str, Cluster]] = ("", {})

    def of(self, document: documents.InputDocument, root: str = "") -> SubmittedObject:
        """Return the submitted object of a plain object or a recorded review. `root` is the folder that a user named.

        Raises:
            CallError: the document is neither a plain object nor a review, or cannot be decoded.
        """
        file, value = document.source, document.value
        if is_review_or_request(value):
            recorded = attributes_of_fixture(value, self._row)
            self._files.mark_as_recorded(describe_lookup(recorded.kind, recorded.namespace, recorded.name))
            return SubmittedObject(recorded, self._view(file, ""))
        written = self._files.apply_kustomizations(file, value)
        attributes = attributes_of_fixture(
            written,
            self._row,
            namespace=self._namespace or DEFAULT_NAMESPACE,
            fills_defaults=self._fills_defaults,
        )
        if is_in_folder_of_tests(file, root) or self._is_for_old_release(file, attributes.kind):
            attributes = replace(attributes, is_of_tests=True)
        if patches := self._files.unmerged_patches(file, value):
            attributes = replace(attributes, unmerged_patches=patches)
        return SubmittedObject(attributes, self._view(file, self._assumed_namespace(file, written, attributes)))

    def _is_for_old_release(self, file: str, kind: GroupVersionKind) -> bool:
        if not is_removed(kind):
            return False
        newer = file_for_new_releases(file, kind)
        is_replaced = newer != "" and self._files.has_file(newer)
        return is_replaced or is_for_old_release(file, kind) or self._files.is_of_older_release(file)

    def _assumed_namespace(self, file: str, written: JSON, attributes: Attributes) -> str:
        # "" if the object, its kustomization or --namespace states the namespace
        is_written = bool(get(written, ("metadata", "namespace")))
        is_stated = self._files.knows_namespace(file) if is_written else bool(self._namespace)
        return "" if is_stated or attributes.kind == NAMESPACE else attributes.namespace

    def _view(self, file: str, assumed_namespace: str) -> Cluster:
        # only the views of the last file are cached, because the objects of a file come together
        if self._views[0] != file:
            self._views = file, {}
        views = self._views[1]
        if assumed_namespace not in views:
            view = self._files.cluster_view_of_file(file, assumed_namespace)
            views[assumed_namespace] = ClusterWithAssumedNamespaces(view)
        return views[assumed_namespace]


def object_in_request_namespace(obj: JSON, review: JSON) -> JSON:
    """Return the object. An object of a review that has no namespace gets the namespace of the request."""
    namespace = get(review, (*object_path(review)[:-1], "namespace")) if is_review_or_request(review) else None
    return object_in_namespace(obj, namespace) if namespace else obj


def is_complete(inputs: documents.InputDocuments) -> bool:
    """Return whether every file was read. Then an object that is not in the files does not exist."""
    return not inputs.problems and not inputs.templates


def notes_on_context(files: FileTree, settings: Settings) -> Iterator[str]:
    """Yield notes about the context files. Call this function after the review of all objects."""
    if settings.context_is_whole and not files.is_whole:
        yield (
            "--context-is-whole is ignored: a file cannot be read, or the files do not show all names, namespaces and "
            "objects of a kustomization; render the files, and pass the result to --context"
        )
    yield from files.notes_on_differing_objects()
