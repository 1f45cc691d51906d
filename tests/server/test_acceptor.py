"""How the server accepts clients: its system calls, errors of accept, and the warning about a key file."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import socket
import ssl
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, listening
from webhook.logs.structured import LINES_PER_S
from webhook.server import operating_system
from webhook.server.tls import key_warning


def until(claim: object) -> None:
    end = time.monotonic() + 10
    while not claim():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


class Exhausted:
    def __init__(self, listening: socket.socket, failures: int = 1) -> None:
        self.listening = listening
        self.failures = failures

    def fileno(self) -> int:
        return self.listening.fileno()

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self.listening.accept()

    def close(self) -> None:
        self.listening.close()


def test_a_lack_of_file_descriptors_is_logged_and_pauses_accepting() -> None:
    with listening(Running()) as server:
        idle = socket.create_connection(("127.0.0.1", server.port))
        until(lambda: server.running.counters.connections["reviews",] == 1)
        (acceptor,) = server.listener._acceptors
        acceptor._listening = Exhausted(acceptor._listening)  # type: ignore[assignment]
        assert httpx.post(f"{server.address}/validate", json=review_of()).status_code == 200
        line = next(line for line in server.running.lines() if line["message"] == "cannot accept connections")
        assert (line["error"], line["connections"]) == ("Too many open files", 1)
        assert server.running.counters.connections_aborted["limit",] == 1
        idle.close()


def test_a_lasting_lack_of_file_descriptors_writes_few_lines() -> None:
    with listening(Running()) as server:
        (acceptor,) = server.listener._acceptors
        acceptor._listening = exhausted = Exhausted(acceptor._listening, failures=8)  # type: ignore[assignment]
        assert httpx.post(f"{server.address}/validate", json=review_of()).status_code == 200
        assert exhausted.failures == 0
        lines = [line for line in server.running.lines() if line["message"] == "cannot accept connections"]
        assert len(lines) == LINES_PER_S


def test_handshakes_end_with_the_server(tmp_path: Path) -> None:
    with listening(Running(), Pki(tmp_path).files) as server:
        client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        until(lambda: server.running.counters.connections["reviews",] == 1)
    assert client.recv(1) == b""
    client.close()
    assert server.running.counters.connections["reviews",] == 0


def test_memory_is_given_back_only_after_growth() -> None:
    operating_system.tune_glibc_allocator()
    trimmer = operating_system.MemoryTrimmer()
    assert not trimmer.trim_if_grown()
    trimmer._least -= 2 * operating_system._GROWN_BYTES
    tried = [trimmer.trim_if_grown() for _ in range(60)]
    assert tried[0]
    assert tried.count(True) < 30, "if trimming frees no memory, the trimmer tries less and less often"


def test_inspecting_the_heap_leaves_nothing_to_the_garbage_collector() -> None:
    operating_system.trim_heap()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            operating_system.trim_heap()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_closed_socket_has_no_unsent_bytes() -> None:
    closed = socket.socket()
    closed.close()
    assert operating_system.unsent_bytes(closed) == 0


def test_the_limit_of_open_files_is_raised_and_never_lowered() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        operating_system.raise_open_file_limit(300)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300
        operating_system.raise_open_file_limit(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


MODES = {0o600: False, 0o400: False, 0o640: True, 0o644: True, 0o604: True, 0o660: True}


@pytest.mark.parametrize(("mode", "is_warned"), MODES.items(), ids=map(oct, MODES))
def test_a_key_causes_a_warning_if_other_users_may_access_it(mode: int, is_warned: bool, tmp_path: Path) -> None:
    key = tmp_path / "tls.key"
    key.write_text("")
    key.chmod(mode)
    warning = key_warning(key)
    assert bool(warning) == is_warned
    if is_warned:
        assert f"`{key}` has mode {mode:04o}" in warning
        assert f"chmod 600 {key}" in warning


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a file")
@pytest.mark.parametrize(("mode", "is_warned"), [(0o440, False), (0o640, False), (0o444, True), (0o460, True)])
def test_a_key_in_a_secret_volume_may_be_readable_by_the_group(mode: int, is_warned: bool, tmp_path: Path) -> None:
    key = tmp_path / "tls.key"
    key.write_text("")
    os.chown(key, 12345, os.getegid())
    key.chmod(mode)
    assert bool(key_warning(key)) == is_warned
    os.chown(key, 12345, 54321)
    assert key_warning(key)


def test_a_server_outside_the_main_thread_leaves_signal_handlers_unchanged() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with listening(Running()):
        assert threading.current_thread() is threading.main_thread()
        assert signal.getsignal(signal.SIGHUP) == before


def test_a_handshake_begins_when_the_first_message_is_whole(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = pki.trust().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            hello = outgoing.read()
            for piece in (hello[:3], hello[3:100], hello[100:]):
                time.sleep(0.05)
                plain.sendall(piece)
            while True:
                incoming.write(plain.recv(65536))
                try:
                    client.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                break
        assert client.version() == "TLSv1.3"
