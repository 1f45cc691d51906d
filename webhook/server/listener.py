"""The listening process: uvicorn with our connections, a drain before it stops, and background work.

There may be two ports: reviews over TLS, and probes and metrics over plain HTTP, because a kubelet has no client
certificate.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from types import FrameType
from typing import Any, Final, TypeAlias, cast

import uvicorn

from webhook.errors import ConfigurationError
from webhook.logs.structured import LimitedLog, Log
from webhook.server import operating_system
from webhook.server.client_clock import ConnectionTimeouts
from webhook.server.connection_limit import ConnectionLimit, abort_overdue, close_idle_connections
from webhook.server.http_connection import HttpConnection, Port
from webhook.server.http_exchange import AsgiApp
from webhook.server.memory_bounds import MAX_PROBE_CONNECTIONS
from webhook.server.server_parts import ServerParts
from webhook.server.tls import Certificates, HandshakeLog
from webhook.settings.serving import ServerSettings

_OTHER_FILES: Final = 200
"""Descriptors for everything except clients: watches of the cluster, policy files, the log."""
_STOP_S: Final = 10
_BACKLOG: Final = 2048
_ALL: Final = "::"
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_SWEEP_S: Final = 0.2
_TRIM_SWEEPS: Final = 15

Background: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""A coroutine that runs until the server stops, such as the watch over policy files."""


class Listener(uvicorn.Server):
    """The server process.

    On SIGTERM and SIGHUP readiness is withdrawn. Connections are then closed after their next answer, until the time of
    `--drain` is over. uvicorn alone would close idle connections at once and lose requests that clients have just sent.
    A second signal, or SIGINT, stops without draining.
    """

    def __init__(
        self,
        app: AsgiApp,
        parts: ServerParts,
        *,
        tls: Certificates | None,
        probes: AsgiApp,
        background: tuple[Background, ...] = (),
        on_start: Callable[[str, int, int | None], None] = lambda _host, _port, _probe_port: None,
        timeouts: ConnectionTimeouts = ConnectionTimeouts(),  # noqa: B008 - it is frozen
    ) -> None:
        """Create a server that does not listen yet.

        `app` answers on the port of the reviews, and `probes` on the port of the probes. `tls` is None for plain HTTP,
        in tests only. `on_start` gets the host and both ports once the server accepts clients.
        """
        super().__init__(_uvicorn_configuration(app, parts.settings))
        self._application = app
        self._settings = parts.settings
        self._tls = tls
        self._timeouts = timeouts
        self._parts = parts
        self._readiness = parts.readiness
        self._counters = parts.counters
        self._probes = probes
        self._handshakes = HandshakeLog(parts.log, parts.counters)
        self._background = background
        self._on_start = on_start
        self._trimmer = operating_system.MemoryTrimmer()
        self._acceptors: list[Acceptor] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_at: float | None = None
        self._signal = ""
        self._is_stop_logged = False
        self._trusted = tls.current.trusted if tls else b""

    def listen(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            ConfigurationError: an address cannot be listened on.
        """
        settings = self._settings
        sockets = [bind(settings.host, settings.port)]
        if settings.probe_port is not None:
            sockets.append(bind(settings.probe_host or settings.host, settings.probe_port))
        operating_system.tune_glibc_allocator()
        operating_system.raise_open_file_limit(settings.max_connections + MAX_PROBE_CONNECTIONS + _OTHER_FILES)
        self.run(sockets=sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, start the background tasks, then call `on_start` with the ports."""
        await super().startup(sockets=[])
        settings = self._settings
        reviews, *probes = sockets or []
        self._accept(reviews, "reviews", settings.max_connections, self._application, self._tls)
        for listening in probes:
            self._accept(listening, "probes", MAX_PROBE_CONNECTIONS, self._probes, None)
        self._sweeping = asyncio.create_task(self._sweep())
        self._tasks = [asyncio.create_task(work()) for work in self._background]
        ports = [acceptor.port for acceptor in self._acceptors]
        self._on_start(settings.host, ports[0], ports[1] if probes else None)

    def _accept(
        self, listening: socket.socket, name: str, max_connections: int, application: AsgiApp, tls: Certificates | None
    ) -> None:
        limit = ConnectionLimit(max_connections, name, self._parts.counters)
        port = Port(
            application=application,
            register=limit,
            timeouts=self._timeouts,
            tls=tls,
            handshakes=self._handshakes,
            parts=self._parts,
            state=self.server_state,
        )
        acceptor = Acceptor(listening, partial(HttpConnection, port), limit, self._parts.log)
        self._acceptors.append(acceptor)
        acceptor.start()

    @property
    def connections(self) -> list[HttpConnection]:
        """Return the open connections of all ports."""
        return list(cast("set[HttpConnection]", self.server_state.connections))

    async def _sweep(self) -> None:
        # aborts slow clients, trims memory and ends a drain that is over
        for number in count():
            await asyncio.sleep(_SWEEP_S)
            now = asyncio.get_running_loop().time()
            for exceeded, aborted in abort_overdue(self.connections, now).items():
                self._counters.connections_aborted[exceeded,] += aborted
            for acceptor in self._acceptors:
                acceptor.limit.abort_slow_holders(now)
            if number % _TRIM_SWEEPS == 0:
                self._trimmer.trim_if_grown()
            self._end_distrusted()
            self._log_stop()
            if self._stop_at is not None:
                self.should_exit = self.should_exit or time.monotonic() >= self._stop_at

    def _log_stop(self) -> None:
        # not in a signal handler, which may interrupt a log line
        if self._readiness.draining and not self._is_stop_logged:
            self._is_stop_logged = True
            self._parts.log.info("stopping", signal=self._signal or None, drain_s=self._settings.drain)

    def _end_distrusted(self) -> None:
        tls = self._tls
        if tls is None or tls.current.trusted == self._trusted:
            return
        self._trusted = tls.current.trusted
        self._tasks.append(asyncio.create_task(close_idle_connections(self._distrusted)))

    def _distrusted(self) -> list[HttpConnection]:
        return [connection for connection in self.connections if connection.trusted not in (None, self._trusted)]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections and the background tasks, then let running requests finish."""
        self._readiness.draining = True
        self._log_stop()
        for acceptor in self._acceptors:
            await acceptor.accept_waiting_and_close()
        await close_idle_connections(lambda: self.connections, lambda: self.force_exit)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().shutdown(sockets=sockets)
        self._sweeping.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install the handlers of signals; SIGHUP of a closed terminal drains as SIGTERM does.

        SIGUSR1 and SIGUSR2 end a process by default, so they are ignored. An ignored signal, such as SIGHUP under
        nohup, stays ignored.
        """
        handlers: dict[signal.Signals, Any] = {
            signal.SIGHUP: self.handle_exit,
            signal.SIGUSR1: signal.SIG_IGN,
            signal.SIGUSR2: signal.SIG_IGN,
        }
        is_main = threading.current_thread() is threading.main_thread()
        before = {
            number: signal.signal(number, handler)
            for number, handler in handlers.items()
            if is_main and signal.getsignal(number) != signal.SIG_IGN
        }
        try:
            with super().capture_signals():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature is a handler's
        """Drain on the first SIGTERM or SIGHUP, unless `--drain` is 0. Stop on SIGINT and on the next signal. Stop at
        once on one more signal.
        """
        self._signal = signal.Signals(sig).name
        if sig != signal.SIGINT and not self._readiness.draining and self._settings.drain > 0:
            self._stop_at = time.monotonic() + self._settings.drain
        elif self.should_exit:
            self.force_exit = True
        else:
            self.should_exit = True
        self._readiness.draining = True


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; `::` accepts IPv4 and IPv6, or only IPv4 if the kernel has no IPv6.

    Raises:
        ConfigurationError: the address is not local, in use or forbidden, or the port is too large.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual = family == socket.AF_INET6 and host == _ALL and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    except OSError as error:
        if host == _ALL and error.errno in _NO_IPV6:
            return bind("0.0.0.0", port)  # noqa: S104 - all addresses are intended
        raise _listen_error(host, port, error) from None
    except OverflowError as error:
        raise _listen_error(host, port, error) from None


def _listen_error(host: str, port: int, error: OSError | OverflowError) -> ConfigurationError:
    reason, _, _ = (getattr(error, "strerror", None) or str(error)).partition(" (while attempting to bind on")
    shown = f"[{host}]" if ":" in host else host
    return ConfigurationError(f"cannot listen on {shown}:{port}: {reason.lower()}")


def _uvicorn_configuration(app: Any, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=HttpConnection,  # type: ignore[arg-type]  # the hint leaves out asyncio.BufferedProtocol
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_STOP_S,
    )


_BURST: Final = 8
"""The maximum number of sockets accepted in one callback; open connections are served between two callbacks."""
_PAUSE_S: Final = 0.1
_LOG_PERIOD_S: Final = 60.0
"""The period of five log lines about failures to accept, and of one line with the number of other failures. Without
resources of the system, accepting fails ten times a second."""


class Acceptor:
    """Accepts the connections of one listening socket, a few at a time. Use an instance on one event loop only.

    `loop.create_server` would accept up to 2,048 waiting connections in one callback. A close of this server would
    reset connections that the system has accepted.
    """

    def __init__(
        self, listening: socket.socket, make: Callable[[], asyncio.BaseProtocol], limit: ConnectionLimit, log: Log
    ) -> None:
        self._listening = listening
        self._make = make
        self.limit = limit
        self._failures = LimitedLog(log.write, "cannot accept connections", _LOG_PERIOD_S)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        number: int = self._listening.getsockname()[1]
        return number

    def start(self) -> None:
        """Begin to accept connections; call once."""
        self._loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        self._resume()

    async def accept_waiting_and_close(self) -> None:
        """Accept the connections that the system has already accepted, then stop."""
        if self._listening.fileno() < 0:
            return
        self._loop.remove_reader(self._listening)
        while self._accept():  # noqa: ASYNC110 - others get their turn between two bursts
            await asyncio.sleep(0)
        self._listening.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> bool:
        # returns whether more connections may wait; no error stops the next call
        for _ in range(_BURST):
            try:
                client, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:  # no file descriptors or no memory for sockets
                self._pause_accepting(error)
                return False
            client.setblocking(False)
            task = self._loop.create_task(self._connect(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return True

    async def _connect(self, client: socket.socket) -> None:
        with suppress(OSError):  # the client has already closed the connection
            await self._loop.connect_accepted_socket(self._make, client)
            return
        client.close()

    def _pause_accepting(self, error: OSError) -> None:
        # the system has no resources for another socket
        self._failures.write("error", {"error": error.strerror or str(error), "connections": len(self.limit)})
        self.limit.abort_least_needed_connection()
        self._loop.remove_reader(self._listening)
        self._loop.call_later(_PAUSE_S, self._resume)
