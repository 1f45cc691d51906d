"""PolicyExceptions of the owner of a namespace on a real API server, with the rights of the install."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.exceptions import (
    BOUNDS,
    EIGHT,
    KIND,
    NEXT_WEEK,
    NINE,
    TODAY,
    apply_as,
    exception,
    refusal_of_nine_gpus,
    without_namespace,
)
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
from tests.e2e.test_rules import pod
from tests.live_policies.stored import binding

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run an API server with two namespaces. ada owns one of them, and bob works in it."""
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("policy-exceptions")) as running:
        for name in ("research", "others"):
            running.kubectl("create", "namespace", name)
        running.kubectl(
            "create", "rolebinding", "bob", "-n", "research", "--clusterrole=system:aggregate-to-edit", "--user=bob"
        )
        yield running


def test_the_owner_of_a_namespace_makes_exceptions_within_bounds(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "claimgate.yaml"
    configuration.write_text("{}\n")
    monkeypatch.setenv("CLAIMGATE_CONFIG", str(configuration))
    with service(server, tmp_path) as replicas:
        apply(
            server,
            [with_mounted_configuration(one) for one in rendered(server, "overlays/live-policies", replicas.port)],
        )
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with certificates(server, tmp_path), registration(server, tmp_path):
            webhooks = "validatingwebhookconfiguration"
            until(
                lambda: all(
                    one["clientConfig"].get("caBundle") for one in server.get(webhooks, "claimgate")["webhooks"]
                ),
                "there is a bundle",
            )
            server.apply(_configuration_of_servers())
            replicas.roll()
            apply(server, [without_namespace(EIGHT), without_namespace(binding("eight-gpus", "eight-gpus"))])
            until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "train-1"), "nine GPUs are refused")
            until(
                lambda: (
                    "policies.validate.claimgate.dev"
                    in {one["name"] for one in server.get(webhooks, "claimgate")["webhooks"]}
                ),
                "the webhook of stored objects is registered",
            )
            _only_who_has_the_right_may_write(server)
            _without_bounds_it_has_no_effect(server)
            _within_bounds_it_has_one(server, configuration, replicas)
            _mistakes_are_refused_and_what_is_out_of_bounds_is_told(server)
            _each_verb_reads_it(server, tmp_path)
            server.kubectl("delete", KIND, "--all", "-n", "research")
            until(lambda: "eight-gpus" in refusal_of_nine_gpus(server, "train-1"), "nine GPUs are refused again")


def _only_who_has_the_right_may_write(server: ApiServer) -> None:
    assert "Forbidden" in apply_as(server, "ada", exception())
    role = "--clusterrole=claimgate-policy-exceptions"
    server.kubectl("create", "rolebinding", "ada", "-n", "research", role, "--user=ada")
    until(lambda: "Forbidden" not in apply_as(server, "ada", exception(), dry_run=True), "ada may write it")
    assert "Forbidden" in apply_as(server, "bob", exception())  # bob may create Pods, but no exceptions
    assert "Forbidden" in apply_as(server, "ada", exception(namespace="others"))
    assert "Forbidden" in _status_written_by_ada(server)


def _status_written_by_ada(server: ApiServer) -> str:
    """Try to write the status of ada's exception as ada, and return kubectl's stderr."""
    body = json.dumps({"status": {"conditions": []}})
    return server.kubectl(
        "patch",
        KIND,
        "old",
        "-n",
        "research",
        "--as=ada",
        "--subresource=status",
        "--type=merge",
        "-p",
        body,
        code=None,
    ).stderr


def _without_bounds_it_has_no_effect(server: ApiServer) -> None:
    told = apply_as(server, "ada", exception())
    assert "Warning: PolicyException research/old has no effect: claimgate.yaml allows no PolicyException" in told
    assert _until_effect(server, "False", "NotAllowed").startswith("claimgate.yaml allows no PolicyException for rule")
    refused = refusal_of_nine_gpus(server, "train-1")
    assert "eight-gpus" in refused


def _within_bounds_it_has_one(server: ApiServer, configuration: Path, replicas: Replicas) -> None:
    configuration.write_text(BOUNDS)
    server.kubectl("patch", "configmap", "claimgate-config", "-n", NAMESPACE, "--type=merge", "-p", _data(BOUNDS))
    message = _until_effect(server, "True", "InEffect")
    assert message == f"objects of namespace research may break eight-gpus until {NEXT_WEEK}"
    until(lambda: not refusal_of_nine_gpus(server, "train-1"), "it may break the rule")
    assert "eight-gpus" in refusal_of_nine_gpus(server, "serve-1")
    assert "eight-gpus" in refusal_of_nine_gpus(server, "train-1", "others")
    lines = [line for one in replicas.running for line in one.log.read_text().splitlines() if '"excepted"' in line]
    assert any(json.loads(line)["excepted"] == ["eight-gpus"] for line in lines)
    until(
        lambda: any("exception ends soon" in one.log.read_text() for one in replicas.running),
        "its end is announced",
        90,
    )
    shown = server.kubectl("get", "cgexc", "-n", "research").stdout.split()
    assert shown == [
        *("NAME", "IN", "EFFECT", "EXPIRES", "OWNER", "AGE"),
        *("old", "True", str(NEXT_WEEK), "ada", shown[-1]),
    ]


def _mistakes_are_refused_and_what_is_out_of_bounds_is_told(server: ApiServer) -> None:
    assert "did you mean `eight-gpus`?" in apply_as(server, "ada", exception("typo", rules=["eight-gpu"]))
    assert "it expired on 2020-01-01" in apply_as(server, "ada", exception("late", expires="2020-01-01"))
    assert "spec.expires" in apply_as(server, "ada", exception("shape", expires="soon"))
    assert "spec.owner" in apply_as(server, "ada", {**exception("short"), "spec": {"rules": ["eight-gpus"]}})
    missing = server.kubectl("get", KIND, "-n", "research", "-o", "name").stdout.split()
    assert missing == ["policyexception.claimgate.dev/old"]
    told = apply_as(server, "ada", exception("long", names=["serve-*"], expires=str(TODAY + dt.timedelta(days=90))))
    assert "Warning: PolicyException research/long has no effect: it ends on" in told
    _until_effect(server, "False", "TooLong", "long")
    refused = refusal_of_nine_gpus(server, "serve-1")
    assert "PolicyException research/long has no effect" in refused


def _each_verb_reads_it(server: ApiServer, folder: Path) -> None:
    server.apply(_in_research("train-1"))
    (folder / "policies").mkdir()
    (folder / "policies" / "eight.yaml").write_text(
        yaml.safe_dump_all([without_namespace(EIGHT), without_namespace(binding("eight-gpus", "eight-gpus"))])
    )
    live = ("--kubeconfig", str(server.kubeconfig), "--only", str(folder / "policies"))
    (folder / "empty.yaml").write_text("{}\n")
    without_bounds = ("--config", str(folder / "empty.yaml"))
    found = json.loads(claimgate("audit", *live, "-n", "research", "-o", "json", "--fail-on=never"))
    assert found["leftOut"]["granted"] == 1
    assert [one["object"]["name"] for one in found["findings"] if one["result"] == "fail"] == []
    without = json.loads(claimgate("audit", *live, "-n", "research", "-o", "json", "--fail-on=never", *without_bounds))
    assert [one["object"]["name"] for one in without["findings"] if one["result"] == "fail"] == ["train-1"]
    (folder / "pod.yaml").write_text(yaml.safe_dump(_in_research("train-2")))
    said = claimgate("simulate", str(folder / "pod.yaml"), *live)
    assert "excepted until" in said
    told = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
    assert "PolicyException research/long has no effect: it ends on" in told
    days = (NEXT_WEEK - dt.datetime.now(dt.UTC).date()).days  # the day may have changed meanwhile
    assert f"PolicyException research/old: ends on {NEXT_WEEK}, in {days} days" in told


def _in_research(name: str) -> dict[str, Any]:
    made = pod(name, NINE)
    return {**made, "metadata": {**made["metadata"], "namespace": "research"}}


def _until_effect(server: ApiServer, status: str, reason: str, name: str = "old") -> str:
    condition: dict[str, Any] = {}

    def holds() -> bool:
        stored = server.get(KIND, name, "research").get("status", {}).get("conditions", ())
        condition.update(next((one for one in stored if one["type"] == "InEffect"), {}))
        return (condition.get("status"), condition.get("reason")) == (status, reason)

    until(holds, f"{name} is InEffect={status}, but {condition}", 40)
    return str(condition["message"])


def _configuration_of_servers() -> dict[str, Any]:
    metadata = {"name": "claimgate-config", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"claimgate.yaml": "{}"}}


def _data(text: str) -> str:
    return json.dumps({"data": {"claimgate.yaml": text}})
