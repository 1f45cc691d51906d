"""A real API server behind a proxy that goes silent: connections stay open, but no data arrives."""

from __future__ import annotations

import io
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from tests.e2e.apiserver import PATIENCE_S
from tests.e2e.conftest import Cluster
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.freshness import WatchTimes
from webhook.cluster.interest import Interest
from webhook.cluster.watch import WatchCluster, WatchedCluster
from webhook.logs.structured import Log

pytestmark = pytest.mark.e2e

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
TIMES = WatchTimes(least_s=4, slack_s=2.0)


class Proxy:
    """Passes bytes between clients and a server. Connections that are open while `is_silent` is true never pass bytes
    again.
    """

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.is_silent = False
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._to)
                self.open += [client, server]
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """Pass bytes in both directions until one side ends. Bytes during and after a silence are dropped."""
        waiting, is_deaf = selectors.DefaultSelector(), False
        waiting.register(client, selectors.EVENT_READ, server)
        waiting.register(server, selectors.EVENT_READ, client)
        with suppress(OSError):
            while True:
                for key, _ in waiting.select():
                    piece = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not piece:
                        key.data.close()
                        return
                    is_deaf = is_deaf or self.is_silent
                    if not is_deaf:
                        key.data.sendall(piece)

    def close(self) -> None:
        for each in (self._listening, *self.open):
            each.close()


@contextmanager
def proxied(cluster: Cluster, folder: Path) -> Iterator[tuple[Proxy, Path]]:
    known = yaml.safe_load(cluster.server.kubeconfig.read_text())
    host, _, port = known["clusters"][0]["cluster"]["server"].removeprefix("https://").partition(":")
    proxy = Proxy((host, int(port)))
    known["clusters"][0]["cluster"] |= {"server": f"https://127.0.0.1:{proxy.port}"}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(known))
    try:
        yield proxy, file
    finally:
        proxy.close()


def eventually(claim: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + within_s
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.05)


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_a_watch_through_a_silent_proxy_is_reported_stopped_and_resumed(cluster: Cluster, tmp_path: Path) -> None:
    with proxied(cluster, tmp_path) as (proxy, kubeconfig):
        view = WatchCluster(
            connect_to_cluster(kubeconfig),
            [Interest(CONFIG_MAP)],
            Log(stream=io.StringIO()),
            backoff_s=(0.1, 0.5),
            times=TIMES,
        )
        view.start()
        try:
            assert view.wait_until_synced(20)
            cluster.server.apply(config_map("heard"))
            eventually(lambda: view.get(CONFIG_MAP, "default", "heard"))
            eventually(lambda: view.age_s > TIMES.least_s / 2)
            eventually(lambda: view.age_s < 1)  # no object changes, but a watch ends and the next one begins
            assert view.failure_count == 0

            proxy.is_silent = True
            cluster.server.apply(config_map("unheard"))
            eventually(lambda: view.age_s > TIMES.stale_s)
            assert view.get(CONFIG_MAP, "default", "unheard") is None
            assert "nothing was heard from the API server for" in WatchedCluster(view).describe_failures()

            proxy.is_silent = False
            eventually(lambda: view.get(CONFIG_MAP, "default", "unheard"))
            assert WatchedCluster(view).describe_failures() == ""
        finally:
            view.close()
