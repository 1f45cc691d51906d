"""Talking to an API server: where it is, who we are, one GET, one POST, one list, one stream of lines.

The `kubernetes` package is imported here and only when a connection is made: it costs half a second. It finds the
server, the credentials and the pool of connections; requests are plain ones, for objects stay plain JSON here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from webhook.attributes import JSON
from webhook.cluster.decoding import LARGEST, Listed, decode_json
from webhook.cluster.private_api import connection_pool
from webhook.cluster.unreachable import Unreachable, describe_connection_error
from webhook.errors import ConfigurationError, LookupFailed

CONNECT_S = 5.0
"""To open a connection: a healthy API server accepts in milliseconds."""
READ_S = 60.0
"""For a whole answer: the API server gives up on a request after 60 s (--request-timeout)."""

POOL = 64
"""Connections kept: one for each watched kind, with room for lists."""
WHOLE = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=1,application/json"
"""Objects without all but their metadata, or whole where a server cannot (meta/v1 PartialObjectMetadata)."""
APPLIED = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML."""
PATCHED = "application/json-patch+json"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
"""No query."""
_CHUNK = 65536
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ServerRefused(LookupFailed):
    """The API server answered with an HTTP error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Page(Protocol):
    """One answer to a list, while it comes: its items, and after the last one `metadata` of the list."""

    @property
    def metadata(self) -> JSON:
        """Where to watch from, and where the next page begins."""
        ...

    def __iter__(self) -> Iterator[JSON]: ...


class Lines(Protocol):
    """An answer that comes line by line; stop() ends it from another thread."""

    def __iter__(self) -> Iterator[JSON]: ...

    def stop(self) -> None:
        """Close the stream, so that whoever reads it returns."""
        ...


class Connection(Protocol):
    """An HTTP client that reads from one API server."""

    def get(self, path: str, query: Mapping[str, str]) -> JSON:
        """Return the decoded body of one answer. Raises LookupFailed."""
        ...

    def post(self, path: str, body: JSON, read_s: float, query: Mapping[str, str] = NOTHING) -> JSON:
        """The answer to an object that is created. Raises LookupFailed."""
        ...

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        """The answer to a server-side apply, which takes fields from other managers. Raises LookupFailed."""
        ...

    def patch(self, path: str, operations: JSON, manager: str, read_s: float) -> JSON:
        """The answer to a JSON Patch. Raises LookupFailed."""
        ...

    def page(self, path: str, query: Mapping[str, str], accept: str = WHOLE) -> Page:
        """One answer to a list, object by object. Raises LookupFailed."""
        ...

    def stream(self, path: str, query: Mapping[str, str], read_s: float, accept: str = WHOLE) -> Lines:
        """Return an answer line by line, as a watch sends it. Raises LookupFailed."""
        ...


def connect_to_cluster(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """A connection by kubeconfig, or by the pod's service account when none is named and there is one.

    Raises:
        ConfigurationError: no server or credentials are configured.
    """
    import kubernetes

    package: Any = kubernetes  # its functions carry no types
    configuration = package.client.Configuration()
    configuration.connection_pool_maxsize = POOL
    try:
        if kubeconfig is None and context is None and _TOKEN.exists():
            package.config.load_incluster_config(client_configuration=configuration)
        else:
            file = str(kubeconfig) if kubeconfig else None
            package.config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
    except Exception as error:  # noqa: BLE001 - the package checks no types: a file of another form raises anything
        raise ConfigurationError(f"{_unusable(kubeconfig, error)}; name one with --kubeconfig") from None
    return _HttpConnection(configuration, connection_pool(configuration))


def _unusable(kubeconfig: Path | None, error: Exception) -> str:
    """Why nothing can be connected to by this file, or by those that kubectl takes when none is named."""
    from kubernetes.config import ConfigException

    if kubeconfig is None and "No configuration found" in str(error):
        return "no cluster is configured by KUBECONFIG, ~/.kube/config or the service account of a pod"
    name = f"kubeconfig {kubeconfig}" if kubeconfig else "the default kubeconfig"
    if kubeconfig and not kubeconfig.exists():
        return f"{name}: no such file"
    if isinstance(error, OSError):
        return f"{name}: {(error.strerror or str(error)).lower()}"
    if isinstance(error, ConfigException):
        return f"{name}: {re.sub(r'^Invalid kube-config( file)?[.] ', '', str(error)).rstrip('.')}"
    return f"{name}: expected YAML with clusters, users, contexts and current-context"


@dataclass(frozen=True, slots=True)
class _HttpConnection:
    configuration: Any
    pool: Any

    def get(self, path: str, query: Mapping[str, str]) -> JSON:
        return self._answer(path, self._request(path, query, READ_S))

    def post(self, path: str, body: JSON, read_s: float, query: Mapping[str, str] = NOTHING) -> JSON:
        return self._answer(path, self._request(path, query, read_s, body=body))

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        query = {"fieldManager": manager, "force": "true"}
        return self._answer(path, self._request(path, query, read_s, body=body, content=APPLIED))

    def patch(self, path: str, operations: JSON, manager: str, read_s: float) -> JSON:
        query = {"fieldManager": manager}
        return self._answer(path, self._request(path, query, read_s, body=operations, content=PATCHED))

    def _answer(self, path: str, response: Any) -> JSON:
        try:
            return json.loads(response.data)
        except ValueError:
            raise LookupFailed(f"{path}: the answer is not JSON") from None
        finally:
            response.release_conn()

    def page(self, path: str, query: Mapping[str, str], accept: str = WHOLE) -> Page:
        return _HttpPage(self._request(path, query, READ_S, accept), path)

    def stream(self, path: str, query: Mapping[str, str], read_s: float, accept: str = WHOLE) -> Lines:
        return _HttpLines(self._request(path, query, read_s, accept), path)

    def _request(
        self,
        path: str,
        query: Mapping[str, str],
        read_s: float,
        accept: str = WHOLE,
        *,
        body: JSON = None,
        content: str = WHOLE,
    ) -> Any:
        import urllib3

        url = f"{self.configuration.host}{path}?{urlencode(query)}"
        headers = {"accept": accept, "user-agent": "claimgate"}
        headers |= {setting["key"]: setting["value"] for setting in self.configuration.auth_settings().values()}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=read_s)
        try:
            written = {} if body is None else {"body": json.dumps(body).encode()}
            sent = {"content-type": content} if written else {}
            method = "GET" if not written else "POST" if content == WHOLE else "PATCH"
            response = self.pool.request(
                method,
                url,
                headers={**headers, **sent},
                timeout=timeout,
                preload_content=False,
                retries=False,
                **written,
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(self.configuration.host, error) from None
        if response.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise ServerRefused(response.status, f"{path}: {_refusal(response)}")
        return response


def _refusal(response: Any) -> str:
    """The message of a metav1.Status, or the HTTP code where the body has none."""
    try:
        return str(json.loads(response.data)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status}"


@dataclass(slots=True)
class _HttpPage:
    response: Any
    path: str
    metadata: JSON = None

    def __iter__(self) -> Iterator[JSON]:
        listed = Listed(_chunks(self.response, self.path))
        try:
            yield from listed
        except ValueError as error:
            raise LookupFailed(f"{self.path}: the answer is not JSON: {error}") from None
        finally:
            self.response.close()
        self.metadata = listed.fields["metadata"]


def _chunks(response: Any, path: str) -> Iterator[bytes]:
    import urllib3

    try:
        yield from response.stream(amt=_CHUNK, decode_content=True)
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise LookupFailed(f"{path}: the stream broke: {describe_connection_error(error)}") from None


@dataclass(frozen=True, slots=True)
class _HttpLines:
    response: Any
    path: str

    def __iter__(self) -> Iterator[JSON]:
        rest = bytearray()
        try:
            for chunk in _chunks(self.response, self.path):
                *lines, last = chunk.split(b"\n")
                for line in lines:
                    rest += line
                    if rest:
                        yield decode_json(bytes(rest))
                    rest = bytearray()
                rest += last
                if len(rest) > LARGEST:
                    raise LookupFailed(f"{self.path}: the stream broke: an event is larger than {LARGEST} bytes")
        except ValueError as error:
            raise LookupFailed(f"{self.path}: the stream broke: {error}") from None
        finally:
            self.response.close()

    def stop(self) -> None:
        with suppress(ValueError, RuntimeError, OSError):  # it has ended already
            self.response.shutdown()
