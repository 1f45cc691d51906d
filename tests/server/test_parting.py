"""No request is lost when the server drains and stops, or when the authority of clients is replaced."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.issue import Pair, authority
from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, Server, listening, reloaded
from tests.server.test_slow_clients import SMALL, answer, connect
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.deadline import Deadline
from webhook.rules.decisions import Verdict
from webhook.server.tls import TlsFiles

METRICS = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def whole(client: ssl.SSLSocket) -> bytes:
    """Return all bytes until the server closes the connection. A reset raises an error."""
    heard = b""
    while piece := client.recv(65536):
        heard += piece
    return heard


@pytest.mark.parametrize("asked", [SMALL, METRICS], ids=["a review", "a page"])
def test_in_a_drain_each_connection_closes_after_its_next_answer(asked: bytes, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, drain=20) as server:
        old = connect(server, pki)
        old.sendall(SMALL)
        assert b"connection: close" not in answer(old)
        server.listener.handle_exit(signal.SIGTERM, None)
        for client in (old, connect(server, pki)):
            client.sendall(asked)
            heard = whole(client)
            assert heard.startswith(b"HTTP/1.1 200 ")
            assert b"connection: close" in heard
            client.close()


def test_a_drain_closes_a_connection_with_the_answer_to_its_current_review(tmp_path: Path) -> None:
    pki, begun, go_on = Pki(tmp_path), threading.Event(), threading.Event()

    def waiting(_attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
        begun.set()
        go_on.wait(10)
        return Verdict(allowed=True)

    with listening(Running(waiting), pki.files, drain=20) as server:
        client = connect(server, pki)
        client.sendall(SMALL)
        assert begun.wait(10)
        server.listener.handle_exit(signal.SIGTERM, None)
        go_on.set()
        heard = whole(client)
        assert heard.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in heard
        client.close()


def test_a_stop_answers_connections_that_the_system_accepted(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        trust = pki.trust()
        raw = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(5)]
        server.listener.should_exit = True
        for each in raw:
            client = trust.wrap_socket(each, server_hostname="localhost", suppress_ragged_eofs=False)
            client.sendall(SMALL)
            assert whole(client).startswith(b"HTTP/1.1 200 ")
            client.close()


def test_a_received_request_is_answered_before_its_connection_is_closed(tmp_path: Path) -> None:
    """The server sees an idle connection when it stops. The next request is still in the buffers of the operating
    system.
    """
    pki, stopping = Pki(tmp_path), threading.Event()

    def busy(attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
        if attributes.uid == "busy":
            stopping.set()
            time.sleep(0.3)
        return Verdict(allowed=True)

    with listening(Running(busy), pki.files) as server:
        clients = [connect(server, pki) for _ in range(30)]
        for client in clients:
            client.sendall(SMALL)
            answer(client)
        first, *others = clients
        body = json.dumps(review_of("busy")).encode()
        first.sendall(SMALL.partition(b"content-length")[0] + b"content-length: %d\r\n\r\n" % len(body) + body)
        stopping.wait(10)
        server.listener.should_exit = True
        for client in others:
            client.sendall(SMALL)
        for client in clients:
            assert whole(client).startswith(b"HTTP/1.1 200 ")
            client.close()


# ---- a new authority of client certificates


def files_of(pki: Pki) -> TlsFiles:
    return TlsFiles(
        certificate=pki.folder / "tls.crt", key=pki.folder / "tls.key", client_ca=pki.folder / "clients.crt"
    )


def trust_clients(pki: Pki, name: str) -> Pair:
    made = authority(name, now=datetime.now(UTC))
    (pki.folder / "clients.crt").write_bytes(made.certificate)
    (pki.folder / f"{name}.crt").write_bytes(made.certificate)
    (pki.folder / f"{name}.key").write_bytes(made.key)
    return made


def shows(pki: Pki, name: str, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = pki.trust()
    context.load_cert_chain(pki.folder / f"{name}.crt", pki.folder / f"{name}.key")
    context.maximum_version = version
    return context


def ask(server: Server, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    with contextlib.ExitStack() as failed:
        failed.callback(raw.close)
        client = context.wrap_socket(raw, server_hostname="localhost", session=session)
        failed.callback(client.close)
        client.sendall(SMALL)
        assert answer(client).startswith(b"HTTP/1.1 200 ")
        failed.pop_all()
    return client


VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_a_session_of_a_replaced_authority_is_not_resumed(version: ssl.TLSVersion, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    trust_clients(pki, "old")
    context = shows(pki, "old", version)
    with listening(Running(), files_of(pki)) as server:
        assert server.certificates is not None
        client = ask(server, context)
        session = client.session
        again = ask(server, context, session)
        assert again.session_reused
        again.close()
        trust_clients(pki, "new")
        assert reloaded(server)
        assert whole(client) == b""  # the server ends the open connection with TLS close_notify
        client.close()
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            ask(server, context, session)
        ask(server, shows(pki, "new", version)).close()


def test_a_replaced_authority_ends_a_connection_after_its_current_answer(tmp_path: Path) -> None:
    pki, begun, go_on = Pki(tmp_path), threading.Event(), threading.Event()
    trust_clients(pki, "old")

    def waiting(attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
        begun.set()
        go_on.wait(10)
        return Verdict(allowed=True)

    with listening(Running(waiting), files_of(pki)) as server:
        assert server.certificates is not None
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        client = shows(pki, "old", ssl.TLSVersion.TLSv1_3).wrap_socket(raw, server_hostname="localhost")
        client.sendall(SMALL)
        assert begun.wait(10)
        trust_clients(pki, "new")
        assert reloaded(server)
        go_on.set()
        heard = whole(client)
        assert heard.startswith(b"HTTP/1.1 200 ")
        client.close()


def test_a_renewed_pair_ends_no_connection_of_the_same_authority(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    trust_clients(pki, "old")
    with listening(Running(), files_of(pki)) as server:
        assert server.certificates is not None
        client = ask(server, shows(pki, "old", ssl.TLSVersion.TLSv1_3))
        trusted = server.certificates.current.trusted
        pki.renew()
        assert reloaded(server)
        assert server.certificates.current.trusted == trusted
        client.sendall(SMALL)
        assert b"connection: close" not in answer(client)
        client.close()
