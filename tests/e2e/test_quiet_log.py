"""The log of a replica on a cluster without optional kinds: start, outage, changed file and stop have one line each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.installation import has_bundles
from tests.e2e.proxies import FaultyProxy
from tests.e2e.replicas import Replica, apply, certificates, rendered, service, until
from tests.e2e.test_first_look import RUNTIMES

pytestmark = pytest.mark.e2e

LONGEST = 400
"""Characters of a line of /readyz?verbose"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("quiet")) as running:
        yield running


def test_each_event_of_a_life_has_one_line(server: ApiServer, tmp_path: Path) -> None:
    url = httpx.URL(server.url)
    proxy = FaultyProxy(url.host, int(url.port or 443))
    with service(server, tmp_path) as replicas:
        try:
            replicas.address = f"https://127.0.0.1:{proxy.port}"
            apply(server, rendered(server, "base", replicas.port))
            with certificates(server, tmp_path):
                until(lambda: has_bundles(server), "both configurations have the bundle")
                replicas.roll()
                replica = replicas.running[0]
                _starts(replica)
                _outlives_an_outage(replica, proxy)
                _sees_a_kind_appear(server, replica)
                _loads_a_new_certificate(server, replica, replicas.mount_anew)
                page = httpx.get(f"http://127.0.0.1:{replica.probes}/readyz?verbose").text
                assert max(map(len, page.splitlines())) < LONGEST, page
                replicas.end(replica)
                assert [one["message"] for one in _lines(replica)][-2:] == ["stopping", "stopped"]
        finally:
            proxy.close()


def _lines(replica: Replica) -> list[dict[str, Any]]:
    return [json.loads(line) for line in replica.log.read_text().splitlines()]


def _counts(replica: Replica, begun: int = 0) -> Counter[str]:
    return Counter(one["message"] for one in _lines(replica)[begun:])


def _starts(replica: Replica) -> None:
    (line,) = [one for one in _lines(replica) if "not installed" in one["message"]]
    assert line["level"] == "info"
    assert not [one for one in _lines(replica) if one["level"] != "info"]
    assert max(_counts(replica).values()) == 1
    assert _metric(replica, "claimgate_watch_failures") == 0


def _outlives_an_outage(replica: Replica, proxy: FaultyProxy) -> None:
    """A replica watches about twenty kinds, and loses all watches at once. The log has one line for the outage and not
    one for each kind.
    """
    begun = len(_lines(replica))
    proxy.mode = "away"
    proxy.cut()
    until(lambda: "API server does not answer" in _counts(replica, begun), "the outage is logged", 90)
    until(lambda: _metric(replica, "claimgate_watch_failures") > 3, "several watches failed more than once")
    proxy.mode = "pass"
    until(lambda: "API server answers again" in _counts(replica, begun), "the end is logged", 90)
    assert _counts(replica, begun) == {"API server does not answer": 1, "API server answers again": 1}


def _metric(replica: Replica, name: str) -> float:
    text = httpx.get(f"http://127.0.0.1:{replica.probes}/metrics").text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def _sees_a_kind_appear(server: ApiServer, replica: Replica) -> None:
    server.kubectl("create", "-f", str(RUNTIMES))
    until(lambda: _counts(replica)["kind is installed now"] == 1, "the kind is logged", 90)


def _loads_a_new_certificate(server: ApiServer, replica: Replica, mount: Callable[[], None]) -> None:
    old = server.get("secret", "claimgate-certificates", "claimgate-system")["data"]["tls.crt"]
    server.kubectl("delete", "secret", "claimgate-certificates", "-n", "claimgate-system")

    def is_new() -> bool:
        done = server.kubectl(
            "get", "secret", "claimgate-certificates", "-n", "claimgate-system", "-o", "json", code=None
        )
        return done.returncode == 0 and json.loads(done.stdout)["data"]["tls.crt"] != old

    until(is_new, "there is a new certificate")
    mount()
    until(lambda: _counts(replica)["reloaded"] == 1, "the certificate is logged", 90)
