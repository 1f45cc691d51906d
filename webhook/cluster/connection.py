"""Connects to an API server: its address, the credentials, and requests to get, post, list and watch.

The `kubernetes` package finds the server and the credentials, and creates the pool of connections. The package is
imported before the first connection, because the import takes half a second. Its typed client is not used: objects stay
plain JSON.

If the API server refuses a token, the fix names the ServiceAccount of the token. The token is claimgate's own, so its
signature is not verified. Source of its claims: k8s.io/kubernetes v1.36 pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import dns1123_subdomain_errors
from webhook.cluster.decoding import LARGEST, ListDecoder, ReadValue, decode_json
from webhook.cluster.freshness import ServerUnreachable, StreamBroken
from webhook.cluster.private_api import connection_pool
from webhook.errors import ConfigurationError, LookupFailed

CONNECT_S = 5.0
"""Seconds for a new connection; a healthy API server accepts it within milliseconds."""
READ_S = 60.0
"""Seconds without a byte of the answer until a request fails. API servers end a request after 60 s
(--request-timeout)."""

POOL = 256
"""The maximum number of connections in the pool. Each watched kind needs several connections. Above this number,
urllib3 writes a warning.
"""
WHOLE = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""The value of a request's Accept header: prefer objects with only metadata (meta/v1 PartialObjectMetadata), and accept
whole objects.
"""
APPLIED = "application/apply-patch+yaml"
"""The media type of server-side apply; JSON is YAML."""
PATCHED = "application/json-patch+json"
_TEST_FAILED = "the server rejected our request due to an error in our request"
"""The API server's error for a JSON Patch with a failed `test` (v1.36)."""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
"""An empty query."""
_CHUNK = 65536
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ServerRefused(LookupFailed):
    """An HTTP error of the API server; `continues` is the token for the next page of an expired list (410)."""

    def __init__(self, code: int, message: str, continues: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.continues = continues


class CredentialsRefused(ServerRefused):
    """The API server refuses the credentials, or requires credentials (401). `fix` says what to do."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(HTTPStatus.UNAUTHORIZED, message)
        self.fix = fix


class ListPage(Protocol):
    """One page of a list while it arrives: its items, then its `metadata`."""

    @property
    def metadata(self) -> JSON:
        """Return the metadata with the resourceVersion and the token of the next page."""
        ...

    def __iter__(self) -> Iterator[JSON]: ...


class LineStream(Protocol):
    """An answer that arrives line by line; stop() ends it from another thread."""

    def __iter__(self) -> Iterator[JSON]: ...

    def stop(self) -> None:
        """End the stream, so that its reader returns."""
        ...


class Connection(Protocol):
    """An HTTP client of one API server; a request that fails raises LookupFailed."""

    def get(self, path: str, query: Mapping[str, str]) -> JSON:
        """Return the decoded body."""
        ...

    def get_metadata(self, path: str) -> JSON:
        """Return one object with only its metadata. Users choose its size, so the decoding lets other threads run."""
        ...

    def post(self, path: str, body: JSON, read_s: float, query: Mapping[str, str] = NOTHING) -> JSON: ...

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        """Send a forced server-side apply and return the answer. The apply also changes fields of other managers."""
        ...

    def delete(self, path: str, read_s: float) -> None: ...

    def patch(self, path: str, operations: JSON, manager: str, read_s: float) -> JSON:
        """Send a JSON Patch and return the answer. Raise LookupFailed also if a `test` of the patch fails."""
        ...

    def page(
        self, path: str, query: Mapping[str, str], accept: str = WHOLE, read_item: ReadValue | None = None
    ) -> ListPage:
        """Return one page of a list, object by object, each decoded with `read_item`."""
        ...

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        read_s: float,
        accept: str = WHOLE,
        read_line: ReadValue | None = None,
    ) -> LineStream:
        """Return an answer such as a watch line by line, each line decoded with `read_line`."""
        ...


def connect_to_cluster(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """Return a connection with the credentials of the kubeconfig. Inside a Pod, the default is its ServiceAccount.

    Args:
        kubeconfig: None for the kubeconfig of kubectl.
        context: the name of a context of the kubeconfig; None for the current context.

    Raises:
        ConfigurationError: no server or credentials are configured.
    """
    import kubernetes

    package: Any = kubernetes  # the functions of the package have no types
    configuration = package.client.Configuration()
    configuration.connection_pool_maxsize = POOL
    try:
        if kubeconfig is None and context is None and _TOKEN.exists():
            package.config.load_incluster_config(client_configuration=configuration)
        else:
            file = str(kubeconfig) if kubeconfig else None
            package.config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
    except Exception as error:  # noqa: BLE001 - the package checks no types: a file of another form can raise anything
        if context and f"name {context} in" in str(error):
            name = _name_of_kubeconfig(kubeconfig)
            message = f"{name} has no context `{context}`; `kubectl config get-contexts` lists its contexts"
            raise ConfigurationError(message) from None
        raise ConfigurationError(
            f"{_reason_of_unusable_kubeconfig(kubeconfig, error)}; name one with --kubeconfig"
        ) from None
    if not configuration.verify_ssl:
        import urllib3

        # the user chose this with insecure-skip-tls-verify; urllib3 would warn of each request
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return _HttpConnection(configuration, connection_pool(configuration))


def _reason_of_unusable_kubeconfig(kubeconfig: Path | None, error: Exception) -> str:
    from kubernetes.config import ConfigException

    if kubeconfig is None and "No configuration found" in str(error):
        return "no cluster is configured by KUBECONFIG, ~/.kube/config or the service account of a pod"
    name = _name_of_kubeconfig(kubeconfig)
    if kubeconfig and not kubeconfig.exists():
        return f"{name}: no such file"
    if isinstance(error, OSError):
        return f"{name}: {(error.strerror or str(error)).lower()}"
    if isinstance(error, ConfigException):
        return f"{name}: {re.sub(r'^Invalid kube-config( file)?[.] ', '', str(error)).rstrip('.')}"
    return f"{name}: expected YAML with clusters, users, contexts and current-context"


def _name_of_kubeconfig(kubeconfig: Path | None) -> str:
    return f"kubeconfig {kubeconfig}" if kubeconfig else "the default kubeconfig"


class _HttpConnection(Struct, frozen=True):
    configuration: Any
    pool: Any

    def get(self, path: str, query: Mapping[str, str]) -> JSON:
        return self._decode_answer(path, self._send_request(path, query, READ_S))

    def get_metadata(self, path: str) -> JSON:
        return self._decode_answer(path, self._send_request(path, NOTHING, READ_S, METADATA), decode_json)

    def post(self, path: str, body: JSON, read_s: float, query: Mapping[str, str] = NOTHING) -> JSON:
        return self._decode_answer(path, self._send_request(path, query, read_s, body=body, method="POST"))

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        query = {"fieldManager": manager, "force": "true"}
        return self._decode_answer(
            path, self._send_request(path, query, read_s, body=body, method="PATCH", content=APPLIED)
        )

    def patch(self, path: str, operations: JSON, manager: str, read_s: float) -> JSON:
        query = {"fieldManager": manager}
        try:
            response = self._send_request(path, query, read_s, body=operations, method="PATCH", content=PATCHED)
        except ServerRefused as error:
            if error.code == HTTPStatus.UNPROCESSABLE_ENTITY and str(error).endswith(_TEST_FAILED):
                raise ServerRefused(error.code, f"{path}: another program changed it at the same time") from None
            raise
        return self._decode_answer(path, response)

    def delete(self, path: str, read_s: float) -> None:
        try:
            self._decode_answer(path, self._send_request(path, NOTHING, read_s, method="DELETE"))
        except ServerRefused as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    def _decode_answer(self, path: str, response: Any, decode: Callable[[bytes], JSON] = json.loads) -> JSON:
        try:
            return decode(response.data)
        except ValueError:
            raise LookupFailed(f"{path}: the answer is not JSON") from None
        except RecursionError:
            raise LookupFailed(f"{path}: the answer is nested too deeply to be read") from None
        finally:
            response.release_conn()

    def page(
        self, path: str, query: Mapping[str, str], accept: str = WHOLE, read_item: ReadValue | None = None
    ) -> ListPage:
        return _HttpPage(self._send_request(path, query, READ_S, accept), path, read_item)

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        read_s: float,
        accept: str = WHOLE,
        read_line: ReadValue | None = None,
    ) -> LineStream:
        return _HttpLineStream(self._send_request(path, query, read_s, accept), path, read_line)

    def _send_request(
        self,
        path: str,
        query: Mapping[str, str],
        read_s: float,
        accept: str = WHOLE,
        *,
        body: JSON = None,
        method: str = "GET",
        content: str = WHOLE,
    ) -> Any:
        import urllib3

        url = f"{self.configuration.host}{path}?{urlencode(query)}"
        headers = {"accept": accept, "user-agent": "claimgate"}
        headers |= {setting["key"]: setting["value"] for setting in self.configuration.auth_settings().values()}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=read_s)
        try:
            written = {} if body is None else {"body": json.dumps(body).encode()}
            content_type = {"content-type": content} if written else {}
            response = self.pool.request(
                method,
                url,
                headers={**headers, **content_type},
                timeout=timeout,
                preload_content=False,
                retries=False,
                **written,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ServerUnreachable(self.configuration.host, error) from None
        if response.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            status = _status_of_refusal(response)
            message = status.get("message") or f"HTTP {response.status}"
            if response.status == HTTPStatus.UNAUTHORIZED:
                sent = list(self.configuration.auth_settings().values())
                fix = fix_of_refused_token(str(sent[0]["value"]) if sent else "")
                raise CredentialsRefused(f"{self._refused_credentials}: {message}", fix)
            raise ServerRefused(
                response.status, f"{path}: {message}", _nested_text_of_status(status, "metadata", "continue")
            )
        return response

    @property
    def _refused_credentials(self) -> str:
        place = f"the API server at {self.configuration.host.rpartition('//')[2]}"
        shown = ["token"] * bool(self.configuration.auth_settings())
        shown += ["client certificate"] * bool(self.configuration.cert_file)
        return f"{place} refuses the {' and the '.join(shown)} of claimgate" if shown else f"{place} needs credentials"


def _status_of_refusal(response: Any) -> Mapping[str, Any]:
    """Return the metav1.Status of an answer; {} if the body has no Status."""
    try:
        status = json.loads(response.data)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def _nested_text_of_status(status: Mapping[str, Any], part: str, name: str) -> str:
    section = status.get(part)
    return str(section.get(name) or "") if isinstance(section, dict) else ""


class _HttpPage(Struct):
    response: Any
    path: str
    read_item: ReadValue | None
    metadata: JSON = None

    def __iter__(self) -> Iterator[JSON]:
        decoder = ListDecoder(_body_chunks(self.response), self.read_item)
        try:
            yield from decoder
        except ValueError as error:
            raise LookupFailed(f"{self.path}: the answer is not JSON: {error}") from None
        finally:
            self.response.close()
        self.metadata = decoder.fields["metadata"]


def _body_chunks(response: Any) -> Iterator[bytes]:
    import urllib3

    try:
        yield from response.stream(amt=_CHUNK, decode_content=True)
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise StreamBroken(error) from None


class _HttpLineStream(Struct, frozen=True):
    response: Any
    path: str
    read_line: ReadValue | None

    def __iter__(self) -> Iterator[JSON]:
        rest = bytearray()
        try:
            for chunk in _body_chunks(self.response):
                *lines, last = chunk.split(b"\n")
                for line in lines:
                    rest += line
                    if rest:
                        yield decode_json(bytes(rest), self.read_line)
                    rest = bytearray()
                rest += last
                if len(rest) > LARGEST:
                    raise LookupFailed(f"{self.path}: the stream broke: an event is larger than {LARGEST} bytes")
        except ValueError as error:
            raise LookupFailed(f"{self.path}: the stream broke: {error}") from None
        finally:
            self.response.close()

    def stop(self) -> None:
        with suppress(ValueError, RuntimeError, OSError):  # the stream has ended already
            self.response.shutdown()


_SUBJECT: Final = "system:serviceaccount:"
_ELSEWHERE: Final = "write other credentials into the kubeconfig: the present credentials are not valid or have expired"


def fix_of_refused_token(authorization: str) -> str:
    """Return the fix for credentials that an API server refuses.

    `authorization` is the sent header, "Bearer TOKEN"; "" for a client certificate or nothing.
    """
    claims = _claims(authorization.rpartition(" ")[2])
    namespace, _, name = str(claims.get("sub") or "").removeprefix(_SUBJECT).partition(":")
    if not _are_names(namespace, name):
        return _ELSEWHERE
    bound = claims.get("kubernetes.io")
    pod = bound.get("pod") if isinstance(bound, dict) else None
    pod_name = str(pod.get("name") or "") if isinstance(pod, dict) else ""
    replace = (
        f"delete this Pod, so that a new Pod gets a token: `kubectl -n {namespace} delete pod {pod_name}`"
        if _are_names(pod_name)
        else "start claimgate with a new token"
    )
    exists = f"`kubectl -n {namespace} get serviceaccount {name}`"
    return f"check that the ServiceAccount exists: {exists}; if it was deleted and created again, {replace}"


def _claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a token in JWS compact form; {} for another text."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _are_names(*texts: str) -> bool:
    return all(text and not dns1123_subdomain_errors(text) for text in texts)
