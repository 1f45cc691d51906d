"""The namespace of a request: its labels for selectors, and the value of `namespaceObject`. It is looked up once."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import JSON, NAMESPACE, Attributes
from webhook.cluster import Cluster
from webhook.errors import BindingError
from webhook.evaluation.request_variables import namespace_object
from webhook.manifests.label_selectors import Labels, Selector, labels_of
from webhook.policy.matching import matches_namespace

_NOT_LOOKED_UP: Final = object()


class RequestNamespace:
    """The namespace of one request."""

    __slots__ = ("_attributes", "_cluster", "_labels", "_namespace")

    def __init__(self, attributes: Attributes, cluster: Cluster) -> None:
        self._attributes = attributes
        self._cluster = cluster
        self._namespace: JSON = _NOT_LOOKED_UP
        self._labels: Labels | None = None

    def labels(self) -> Labels | None:
        """Return the labels of the namespace, None when it does not exist.

        Raises:
            LookupFailed: nobody can say.
        """
        if self._labels is None:
            namespace = self._look_up_namespace()
            self._labels = None if namespace is None else labels_of(namespace)
        return self._labels

    def is_selected_by(self, selector: Selector) -> bool:
        """Return whether a namespaceSelector selects the namespace.

        Raises:
            BindingError: the namespace does not exist, so nobody knows its labels.
            LookupFailed: nobody can say what its labels are.
        """
        if not selector.requirements:
            return True
        attributes, labels = self._attributes, self._labels
        if labels is not None and attributes.namespace and attributes.resource.resource != "namespaces":
            return selector.matches(labels)  # as mostly: another policy has asked for them
        return matches_namespace(selector, self._attributes, self.labels)

    def namespace_object_as_cel_value(self) -> JSON:
        """Return the value of `namespaceObject`: null for Namespaces themselves and for cluster-scoped objects.

        Raises:
            BindingError: the namespace does not exist.
            LookupFailed: nobody can say.
        """
        name = self._attributes.namespace
        if not name or self._attributes.kind == NAMESPACE:
            return None
        namespace = self._look_up_namespace()
        if namespace is None:
            raise BindingError(f'namespaces "{name}" not found')
        return namespace_object(namespace)

    def _look_up_namespace(self) -> JSON:
        if self._namespace is _NOT_LOOKED_UP:
            self._namespace = self._cluster.get(NAMESPACE, "", self._attributes.namespace)
        return self._namespace
