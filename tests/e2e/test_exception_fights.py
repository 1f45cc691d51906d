"""Two owners, two exceptions and two replicas: nothing is undone, a status is written once, and server-side apply
reports a conflict to two owners of one object.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.exceptions import (
    BOUNDS,
    EIGHT,
    KIND,
    TODAY,
    apply_as,
    exception,
    refusal_of_nine_gpus,
    without_namespace,
)
from tests.e2e.installation import has_bundles
from tests.e2e.replicas import (
    Replicas,
    apply,
    certificates,
    registration,
    rendered,
    service,
    until,
    with_mounted_configuration,
)
from tests.live_policies.stored import binding

pytestmark = pytest.mark.e2e

OWNERS = {"ada": "research", "eve": "research", "bob": "others"}
QUIET_S = 10
"""Servers compare each stored status with the wanted one every second."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("exception-fights")) as running:
        for name in ("research", "others"):
            running.kubectl("create", "namespace", name)
        yield running


def test_owners_exceptions_and_replicas_do_not_fight(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "claimgate.yaml"
    configuration.write_text(BOUNDS.replace("[research]", "[research, others]"))
    monkeypatch.setenv("CLAIMGATE_CONFIG", str(configuration))
    with service(server, tmp_path) as replicas:
        objects = rendered(server, "overlays/live-policies", replicas.port)
        apply(server, [with_mounted_configuration(one) for one in objects])
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with certificates(server, tmp_path), registration(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            apply(server, [without_namespace(EIGHT), without_namespace(binding("eight-gpus", "eight-gpus"))])
            until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "train-1"), "nine GPUs are refused")
            for user, namespace in OWNERS.items():
                role = "--clusterrole=claimgate-policy-exceptions"
                server.kubectl("create", "rolebinding", user, "-n", namespace, role, f"--user={user}")
            _an_exception_of_another_namespace_has_no_effect(server)
            _two_exceptions_have_their_effects(server, replicas)
            _one_ends_and_the_other_stays(server)
            _two_owners_of_one_object_are_told(server)
            server.kubectl("delete", KIND, "--all", "-n", "research")
            until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "train-1"), "nine GPUs are refused again")


def _an_exception_of_another_namespace_has_no_effect(server: ApiServer) -> None:
    assert not apply_as(server, "bob", exception(namespace="others"))
    _until(server, "old", "InEffect", "others")
    until(
        lambda: not refusal_of_nine_gpus(server, "train-1", "others"), "nine GPUs are allowed in the namespace of bob"
    )
    assert "eight-gpus" in refusal_of_nine_gpus(server, "train-1")


def _two_exceptions_have_their_effects(server: ApiServer, replicas: Replicas) -> None:
    assert not apply_as(server, "ada", exception("of-ada"))
    assert not apply_as(server, "eve", exception("of-eve", names=["train-*", "serve-*"], owner="eve"))
    for name in ("of-ada", "of-eve"):
        _until(server, name, "InEffect")
    until(
        lambda: not refusal_of_nine_gpus(server, "train-1") and not refusal_of_nine_gpus(server, "serve-1"),
        "both allow their Pods",
    )
    before = _versions(server)
    time.sleep(QUIET_S)
    assert _versions(server) == before, "no replica writes a status again"
    replicas.roll()
    time.sleep(QUIET_S)
    assert _versions(server) == before, "no other replica writes a status again"


def _one_ends_and_the_other_stays(server: ApiServer) -> None:
    server.kubectl("delete", KIND, "of-eve", "-n", "research", "--as=ada")
    until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "serve-1"), "the Pods of eve are refused")
    assert not refusal_of_nine_gpus(server, "train-1")
    late = str(TODAY + dt.timedelta(days=90))
    told = apply_as(server, "eve", exception("of-eve", owner="eve", expires=late))
    assert "PolicyException research/of-eve has no effect: it ends on" in told
    _until(server, "of-eve", "TooLong")
    assert not refusal_of_nine_gpus(server, "train-1"), "the exception without an effect does not take that of ada away"
    server.kubectl("delete", KIND, "of-ada", "-n", "research", "--as=ada")
    until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "train-1"), "nobody allows it")
    assert "PolicyException research/of-eve has no effect" in refusal_of_nine_gpus(server, "train-1")


def _two_owners_of_one_object_are_told(server: ApiServer) -> None:
    """Two owners apply one object on the server side, and conflict about its spec. claimgate owns the fields of the
    status, so there is no conflict about them.
    """
    assert not _server_side(server, "ada", exception("shared"))
    _until(server, "shared", "InEffect")
    told = _server_side(server, "eve", exception("shared", names=["serve-*"], owner="eve"))
    for field in (".spec.names", ".spec.owner"):
        assert field in told, told
    assert 'conflicts with "ada"' in told
    assert not refusal_of_nine_gpus(server, "train-1")
    assert not _server_side(server, "eve", exception("shared", names=["serve-*"], owner="eve"), "--force-conflicts")
    _until(server, "shared", "InEffect")
    until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "train-1"), "the spec of eve counts")
    until(lambda: not refusal_of_nine_gpus(server, "serve-1"), "the spec of eve counts")
    told = _server_side(server, "ada", exception("shared"))
    assert ".spec.owner" in told
    assert "status" not in told
    managers = {one["manager"]: one.get("subresource") for one in _managed(server, "shared")}
    assert managers["claimgate"] == "status"
    assert {name for name, part in managers.items() if part is None} == {"ada", "eve"}


def _server_side(server: ApiServer, user: str, value: dict[str, Any], *flags: str) -> str:
    """Apply on the server side as this user, and return kubectl's stderr. The user is also the field manager."""
    how = ("--server-side", f"--field-manager={user}", f"--as={user}", *flags)
    return server.kubectl("apply", *how, "-f", "-", given=yaml.safe_dump(value), code=None).stderr


def _until(server: ApiServer, name: str, reason: str, namespace: str = "research") -> None:
    """Wait for this reason in the status of the current spec."""

    def holds() -> bool:
        one = server.get(KIND, name, namespace)
        conditions = {each["type"]: each for each in one.get("status", {}).get("conditions", ())}
        condition = conditions.get("InEffect", {})
        return (condition.get("reason"), condition.get("observedGeneration")) == (reason, one["metadata"]["generation"])

    until(holds, f"{name} is {reason}", 40)


def _versions(server: ApiServer) -> dict[str, str]:
    listed = json.loads(server.kubectl("get", KIND, "-A", "-o", "json").stdout)["items"]
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in listed}


def _managed(server: ApiServer, name: str) -> list[dict[str, Any]]:
    shown = server.kubectl("get", KIND, name, "-n", "research", "-o", "json", "--show-managed-fields").stdout
    return list(json.loads(shown)["metadata"]["managedFields"])
