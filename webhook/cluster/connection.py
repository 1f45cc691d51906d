"""Reading from an API server: where it is, who we are, one GET, one stream of lines.

The `kubernetes` package is imported here and only when a connection is made: it costs half a second. It finds the
server, the credentials and the pool of connections; requests are plain GETs, for objects stay plain JSON here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from webhook.attributes import JSON
from webhook.errors import ConfigurationError, LookupFailed

CONNECT_S = 5.0
"""To open a connection: a healthy API server accepts in milliseconds."""
READ_S = 60.0
"""For a whole answer: the API server gives up on a request after 60 s (--request-timeout)."""

POOL = 64
"""Connections kept: one for each watched kind, with room for lists."""
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ServerRefused(LookupFailed):
    """The API server answered with an error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Lines(Protocol):
    """An answer that comes line by line; stop() ends it from another thread."""

    def __iter__(self) -> Iterator[JSON]: ...

    def stop(self) -> None:
        """End the stream."""
        ...


class Connection(Protocol):
    """Read access to an API server."""

    def get(self, path: str, query: Mapping[str, str]) -> JSON:
        """One answer. Raises LookupFailed."""
        ...

    def stream(self, path: str, query: Mapping[str, str], read_s: float) -> Lines:
        """One answer, line by line. Raises LookupFailed."""
        ...


def connect(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
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
    except (package.config.ConfigException, OSError) as error:
        raise ConfigurationError(f"kubeconfig {kubeconfig or ''}: {error}; name one with --kubeconfig") from None
    return _HttpConnection(configuration, package.client.rest.RESTClientObject(configuration).pool_manager)


@dataclass(frozen=True, slots=True)
class _HttpConnection:
    configuration: Any
    pool: Any

    def get(self, path: str, query: Mapping[str, str]) -> JSON:
        response = self._request(path, query, READ_S)
        try:
            return json.loads(response.data)
        except ValueError:
            raise LookupFailed(f"{path}: the answer is not JSON") from None
        finally:
            response.release_conn()

    def stream(self, path: str, query: Mapping[str, str], read_s: float) -> Lines:
        return _HttpLines(self._request(path, query, read_s), path)

    def _request(self, path: str, query: Mapping[str, str], read_s: float) -> Any:
        import urllib3

        url = f"{self.configuration.host}{path}?{urlencode(query)}"
        headers = {"accept": "application/json", "user-agent": "claimgate"}
        headers |= {setting["key"]: setting["value"] for setting in self.configuration.auth_settings().values()}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=read_s)
        try:
            response = self.pool.request(
                "GET", url, headers=headers, timeout=timeout, preload_content=False, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise LookupFailed(f"{path}: the API server cannot be reached: {error}") from None
        if response.status != 200:
            raise ServerRefused(response.status, f"{path}: {_refusal(response)}")
        return response


def _refusal(response: Any) -> str:
    """What a metav1.Status says, else the HTTP code."""
    try:
        return str(json.loads(response.data)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status}"


@dataclass(frozen=True, slots=True)
class _HttpLines:
    response: Any
    path: str

    def __iter__(self) -> Iterator[JSON]:
        import urllib3

        rest = b""
        try:
            for chunk in self.response.stream(amt=65536, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise LookupFailed(f"{self.path}: the stream broke: {error}") from None
        finally:
            self.response.close()

    def stop(self) -> None:
        with suppress(ValueError, RuntimeError, OSError):  # it has ended already
            self.response.shutdown()
