"""A submitted object of a file, and the view of the cluster for it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from webhook.admission import fixtures
from webhook.apimachinery.attributes import JSON, NAMESPACE, Attributes
from webhook.apimachinery.paths import get
from webhook.cluster import Cluster
from webhook.cluster.file_tree import FileTree
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.cluster.lookup import describe_lookup
from webhook.input import documents
from webhook.settings.shared import Settings


class SubmittedObject(Struct, frozen=True):
    """An object as the API server would send it, with the view of its cluster."""

    attributes: Attributes
    cluster: Cluster


class Submissions:
    """The objects of files, each with its view; objects of one file in one namespace share theirs."""

    def __init__(
        self, files: FileTree, row: fixtures.RowOf, *, namespace: str = "", fills_defaults: bool = True
    ) -> None:
        """Args: the files; what is known of kinds; the namespace that a person names for objects without one; whether
        plain objects get the defaults of an API server.
        """
        self._files = files
        self._row = row
        self._namespace = namespace
        self._fills_defaults = fills_defaults
        self._views: tuple[str, dict[str, Cluster]] = ("", {})

    def of(self, document: documents.InputDocument) -> SubmittedObject:
        """Return the submitted object of one document: an object, or a recorded review, which has certain names and
        namespace.

        Raises:
            CallError: the document is neither.
        """
        file, value = document.source, document.value
        if fixtures.is_review_or_request(value):
            recorded = fixtures.attributes_of_fixture(value, self._row)
            self._files.mark_as_recorded(describe_lookup(recorded.kind, recorded.namespace, recorded.name))
            return SubmittedObject(recorded, self._view(file, ""))
        written = self._files.apply_name_changes(file, value)
        attributes = fixtures.attributes_of_fixture(
            written,
            self._row,
            namespace=self._namespace or fixtures.DEFAULT_NAMESPACE,
            fills_defaults=self._fills_defaults,
        )
        return SubmittedObject(attributes, self._view(file, self._assumed_namespace(file, written, attributes)))

    def _assumed_namespace(self, file: str, written: JSON, attributes: Attributes) -> str:
        """Return the namespace of the attributes if it is only assumed, because no file and no person states it; else
        "".
        """
        is_written = bool(get(written, ("metadata", "namespace")))
        is_stated = self._files.knows_namespace(file) if is_written else bool(self._namespace)
        return "" if is_stated or attributes.kind == NAMESPACE else attributes.namespace

    def _view(self, file: str, unsaid: str) -> Cluster:
        """Return the view of the cluster for a file; the views of the last file are kept, because the objects of a file
        follow each other.
        """
        if self._views[0] != file:
            self._views = file, {}
        views = self._views[1]
        if unsaid not in views:
            views[unsaid] = ClusterWithAssumedNamespaces(self._files.cluster_view_of_file(file, unsaid))
        return views[unsaid]


def object_in_request_namespace(obj: JSON, review: JSON) -> JSON:
    """Return the object of a recorded review in the namespace of the request; another object unchanged."""
    namespace = (
        get(review, (*fixtures.object_path(review)[:-1], "namespace"))
        if fixtures.is_review_or_request(review)
        else None
    )
    metadata = obj.get("metadata")
    if not namespace or not isinstance(metadata, dict) or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def is_complete(inputs: documents.InputDocuments) -> bool:
    """Return whether every file was read. Then an object that seems to be absent is in no unread file."""
    return not inputs.problems and not inputs.templates


def notes_on_context(files: FileTree, settings: Settings) -> Iterator[str]:
    """Yield what a person should know of the context, after the objects were reviewed."""
    if settings.context_is_whole and not files.is_whole:
        yield (
            "--context-is-whole: is ignored because files are not read, or are named in several ways by "
            "kustomizations: an object that seems to be missing may be among them"
        )
    yield from files.notes_on_differing_objects()
