"""Uses and verifies the private parts of uvicorn and ssl that the server needs.

`connections.py` replaces callbacks of uvicorn's protocol and reads what it keeps of a request; `tls.py` calls
what stands behind ssl.SSLObject. docs/decisions/0007-uvicorn-protocol.md says why, and pyproject.toml bounds uvicorn.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any, Final

from webhook.errors import DependencyChanged

_CALLBACKS: Final = (
    *("connection_made", "connection_lost", "data_received", "send_400_response", "shutdown", "_start_asgi_task"),
    *("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete"),
    "on_response_complete",
)
_OF_PROTOCOL: Final = (
    *("transport", "flow", "pipeline", "scope", "headers", "cycle", "expect_100_continue", "server_state"),
    *("parser", "loop", "tasks"),
)
_OF_CYCLE: Final = (
    *("scope", "transport", "on_response", "keep_alive"),
    *("disconnected", "message_event", "response_complete"),
)
_OF_SERVER: Final = ("startup", "shutdown", "on_tick", "capture_signals", "handle_exit", "run")


def check_installed_version() -> None:
    """Check that the installed uvicorn and Python have every private attribute that the server uses.

    Raises:
        DependencyChanged: it names the package, its version and what is missing.
    """
    if missing := next(_missing_of_uvicorn(), None):
        raise DependencyChanged("uvicorn", missing)
    if "_sslobj" not in _attribute_names_in_function(ssl.SSLObject._create):  # type: ignore[attr-defined]  # noqa: SLF001
        raise RuntimeError("this version of Python keeps nothing in SSLObject._sslobj")


def _missing_of_uvicorn() -> Iterator[str]:
    from uvicorn import Server
    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
    from uvicorn.server import ServerState

    called: tuple[tuple[type, tuple[str, ...]], ...] = ((HttpToolsProtocol, _CALLBACKS), (Server, _OF_SERVER))
    for owner, names in called:
        yield from (f"{owner.__name__}.{name}" for name in names if not hasattr(owner, name))
    read: tuple[tuple[type, tuple[str, ...]], ...] = (
        (HttpToolsProtocol, _OF_PROTOCOL),
        (RequestResponseCycle, _OF_CYCLE),
        (FlowControl, ("read_paused",)),
        (ServerState, ("connections", "tasks", "total_requests")),
    )
    for made, names in read:
        kept = _attribute_names_in_function(made.__init__)  # type: ignore[misc]  # of the class itself
        yield from (f"{made.__name__}.{name}" for name in names if name not in kept)


def inner(tls: ssl.SSLObject) -> Any:
    """Return the inner object of an SSLObject, whose `read` saves each review one call."""
    return tls._sslobj  # type: ignore[attr-defined]  # noqa: SLF001


def _attribute_names_in_function(function: Any) -> tuple[str, ...]:
    """Return the names of all attributes that the code of a function reads or sets."""
    names: tuple[str, ...] = function.__code__.co_names
    return names
