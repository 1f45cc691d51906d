"""The listening process: uvicorn with our connections, a drain before it stops, and background work beside it.

Knows uvicorn, signals and the event loop; knows nothing of what the application answers.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, TypeAlias

import uvicorn

from webhook.errors import ConfigurationError
from webhook.server.connections import BoundedConnection, Patience, close_overdue
from webhook.server.readiness import Readiness

KEEP_ALIVE_S: Final = 120
"""An API server reuses idle connections for 90 s and does not retry a POST that meets a closed one."""
_STOP_S: Final = 10
_GOODBYE_S: Final = 0.3
_BACKLOG: Final = 2048
_SWEEP_TICKS: Final = 5

Background: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""A coroutine that runs beside the server until it stops, such as the watch over policy files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to listen and how to part: port 0 takes any free port; without tls it is plain HTTP, for tests only."""

    host: str = "0.0.0.0"  # noqa: S104 - a Pod answers on every address it has
    port: int = 8443
    tls: ssl.SSLContext | None = None
    patience: Patience = field(default_factory=Patience)
    drain_s: float = 5.0


class Listener(uvicorn.Server):
    """One server. `listen()` blocks until SIGTERM or SIGINT and then returns: stopping when told to is no failure.

    On SIGTERM readiness is withdrawn first and connections are closed after their next answer, for `drain_s`; uvicorn
    alone closes idle connections at once and loses requests that are on their way. A second signal, or SIGINT, stops
    without draining.
    """

    def __init__(
        self,
        app: Any,
        place: Place,
        readiness: Readiness,
        *,
        background: tuple[Background, ...] = (),
        on_start: Callable[[str, int], None] = lambda _host, _port: None,
    ) -> None:
        super().__init__(_configuration(app, place))
        self._place = place
        self._readiness = readiness
        self._background = background
        self._on_start = on_start
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_at: float | None = None

    def listen(self) -> None:
        """Bind, serve, and return when told to stop.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        self.run(sockets=[bind(self._place)])

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Listen, start the background work, and say so with the port that was taken."""
        await super().startup(sockets=sockets)
        self._tasks = [asyncio.create_task(work()) for work in self._background]
        self._on_start(self._place.host, self.servers[0].sockets[0].getsockname()[1])

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: close slow clients, end a drain that lasted long enough."""
        if counter % _SWEEP_TICKS == 0:
            close_overdue(self.server_state.connections, self._place.patience, asyncio.get_running_loop().time())
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        """Stop the background work, then let requests in flight finish."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closer = asyncio.create_task(self._cut_off_closing())
        await super().shutdown(sockets=sockets)
        closer.cancel()

    async def _cut_off_closing(self) -> None:
        """End connections that are closed but whose client does not say goodbye: TLS would wait for it for 30 s."""
        while True:
            await asyncio.sleep(_GOODBYE_S)
            for connection in list(self.server_state.connections):
                transport = getattr(connection, "transport", None)
                if transport is not None and transport.is_closing() and not transport.get_write_buffer_size():
                    transport.abort()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature is a handler's
        """Drain on the first SIGTERM, stop on anything else."""
        if sig == signal.SIGTERM and not self._readiness.draining and self._place.drain_s > 0:
            self._stop_at = time.monotonic() + self._place.drain_s
        elif self.should_exit:
            self.force_exit = True
        else:
            self.should_exit = True
        self._readiness.draining = True


def bind(place: Place) -> socket.socket:
    """A listening socket at the place; an IPv6 host also takes IPv4 where the system can.

    Raises:
        ConfigurationError: the address is not ours, taken or forbidden.
    """
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    dual = family == socket.AF_INET6 and place.host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"cannot listen on {place.host}:{place.port}: {reason.lower()}") from None


def _configuration(app: Any, place: Place) -> uvicorn.Config:
    tls = place.tls
    return uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_S,
        ssl_context_factory=None if tls is None else (lambda _config, _default: tls),
    )
