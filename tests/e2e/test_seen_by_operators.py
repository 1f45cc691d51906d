"""What operators and users see of a replica with a `claimgate.yaml`: warnings, denials, audit annotations, metrics, log
lines, and the report of the check.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, Cluster, _port, _serve, claimgate, registered_webhook
from tests.e2e.replicas import until
from tests.e2e.test_one_template import _definition
from tests.e2e.test_rules import pod
from tests.evaluation.test_stored_problems import mpi_job
from webhook.workloads.table import load_table

pytestmark = pytest.mark.e2e

IN_A_WEEK = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7)
CONFIGURATION = f"""
exceptions:
- {{rules: [gpu-portable/all], namespaces: [research], owner: ada, reason: old nodes, expires: "{IN_A_WEEK}"}}
exemptions:
- {{users: [breaker], owner: ada, reason: repairs, expires: "{IN_A_WEEK}"}}
"""
ALL, HALF = {"gpu": "all"}, {"gpu": "0.5"}
_SAMPLE = re.compile(r"(claimgate_\w+)\{([^}]*)\} (\S+)")


class Seen(NamedTuple):
    cluster: Cluster
    audit_log: Path
    configuration: Path

    def metrics(self, name: str) -> list[str]:
        """Return the labels of each sample of a metric that is above 0."""
        trust = ssl.create_default_context(cafile=str(self.cluster.certificates / "ca.crt"))
        trust.check_hostname = False
        text = httpx.get(f"https://localhost:{self.cluster.port}/metrics", verify=trust).text
        samples = (_SAMPLE.fullmatch(line) for line in text.splitlines())
        return [one[2] for one in samples if one and one[1] == name and float(one[3]) > 0]

    def says(self, obj: dict[str, Any], *flags: str, code: int | None = 1) -> str:
        """Create an object in a dry run, and return what kubectl prints."""
        given = yaml.safe_dump(obj)
        return self.cluster.server.kubectl(
            "create", "--dry-run=server", *flags, "-f", "-", given=given, code=code
        ).stderr


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Run a replica that also warns of its mutations, in a cluster in which users may do everything."""
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("seen")
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    (folder / "audit.yaml").write_text(yaml.safe_dump(policy))
    configuration = folder / "claimgate.yaml"
    configuration.write_text(CONFIGURATION)
    flags = (f"--audit-policy-file={folder / 'audit.yaml'}", f"--audit-log-path={folder / 'audit.log'}")
    with apiserver.running(folder, *flags) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLAIMGATE_WARN_OF_MUTATIONS", "true")
        table = load_table()
        kinds = {"RayCluster": "v1", "RayJob": "v1", "MPIJob": "v2beta1"}
        server.apply(*(_of_version(_definition(row), kinds[row.kind]) for row in table.rows if row.kind in kinds))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        server.kubectl("create", "namespace", "research")
        server.kubectl("create", "clusterrolebinding", "breaker", "--clusterrole=cluster-admin", "--user=breaker")
        with registered_webhook(server, folder, f"--config={configuration}") as cluster:
            made = Seen(cluster, folder / "audit.log", configuration)
            until(lambda: "gpu-portable/all" in made.says(_holding("probe", ALL), code=None), "the webhook is called")
            yield made
            cluster.server.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "claimgate")
    until(lambda: cluster.lines("stopped"), "the end of the process is in its log")


def _of_version(definition: dict[str, Any], version: str) -> dict[str, Any]:
    definition["spec"]["versions"][0]["name"] = version
    return definition


def _in_research(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "namespace": "research"}}


def _holding(name: str, limits: dict[str, str]) -> dict[str, Any]:
    """Return a RayCluster, because an API server does not check the containers of a RayCluster."""
    head = {"rayStartParams": {}, "template": {"spec": pod("x", limits)["spec"]}}
    return _ray_cluster(name, headGroupSpec=head)


def _ray_cluster(name: str, **spec: Any) -> dict[str, Any]:
    head = {"rayStartParams": {}, "template": {"spec": pod("x")["spec"]}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": metadata,
        "spec": {"headGroupSpec": head, **spec},
    }


def test_the_use_of_an_exception_is_logged_and_counted_and_its_end_announced(seen: Seen) -> None:
    assert "gpu-portable/all" in seen.says(_holding("a", ALL))
    seen.says(_in_research(_holding("excepted", ALL)), code=0)
    line = _until_line(seen, "review", lambda one: one["name"] == "excepted" and bool(one.get("excepted")))
    assert "gpu-portable/all" in json.dumps(line["excepted"])
    until(
        lambda: any(
            'enforcement_action="excepted"' in one and 'rule="gpu-portable/all"' in one
            for one in seen.metrics("claimgate_broken_rules_total")
        ),
        "the use is counted",
    )
    (ends,) = (one for one in seen.metrics("claimgate_exception_days_left") if 'what="exception"' in one)
    assert 'owner="ada"' in ends
    assert f'expires="{IN_A_WEEK}"' in ends
    assert seen.cluster.lines("exception ends soon")[0]["owner"] == "ada"


def test_requests_of_exempt_users_are_not_sent(seen: Seen) -> None:
    refused = _holding("repair", ALL)
    assert "gpu-portable/all" in seen.says(refused)
    seen.says(refused, "--as=breaker", code=0)


def test_a_mistake_in_the_configuration_keeps_the_last_good_configuration(seen: Seen) -> None:
    before = len(seen.cluster.lines("reload failed"))
    seen.configuration.write_text(CONFIGURATION.replace("owner: ada, reason: old", "ower: ada, reason: old"))
    until(lambda: len(seen.cluster.lines("reload failed")) > before, "the mistake is logged")
    assert "ower" in seen.cluster.lines("reload failed")[-1]["error"]
    seen.says(_in_research(_holding("still", ALL)), code=0)
    assert "gpu-portable/all" in seen.says(_holding("still", ALL))
    assert seen.metrics("claimgate_build_info")
    seen.configuration.write_text(CONFIGURATION)
    until(
        lambda: seen.cluster.lines("reloaded")[-1:] and seen.cluster.lines("reloaded")[-1]["what"] == "configuration",
        "",
    )


def test_users_are_told_of_a_mutation_with_its_reason(seen: Seen) -> None:
    told = seen.says(pod("translated", {"gpu": "1"}), code=0)
    assert "Warning: " in told
    assert "changed" in told
    assert "nvidia.com/gpu" in told
    assert "(policy gpu-portable" in told


def test_audit_mode_distinguishes_what_would_deny_from_what_would_warn(seen: Seen, tmp_path: Path) -> None:
    server, place = seen.cluster.server, f"{NAMESPACE}/audited"
    spec = pod("x", {"nvidia.com/gpu": "500m", "nvidia.com/gpux": "1"})["spec"]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]
    group = {"groupName": "g", "template": {"spec": spec}}
    obj = _ray_cluster("both", workerGroupSpecs=[group])
    with _audited(server, tmp_path, place) as audited:

        def is_annotated() -> bool:
            seen.says(obj, "--as=breaker", code=0)  # the webhooks of the first server get no requests of this user
            return any("would-deny" in key for key in _annotations(seen))

        until(is_annotated, "the audit log has the annotation")
        texts = _annotations(seen)
        deny, warn = (
            next(v for key, v in texts.items() if key.endswith(name)) for name in ("would-deny", "would-warn")
        )
        assert "pod-resources/whole-number" in deny
        assert "claims-exactly-one" in deny, "every policy that would deny, not only the first"
        assert "gpu-requests/unknown-device" in warn
        assert "gpu-requests/unknown-device" not in deny
        counted = audited.metrics("claimgate_broken_rules_total")
        for action, rule in (
            ("would_deny", "pod-resources/whole-number"),
            ("would_warn", "gpu-requests/unknown-device"),
        ):
            assert any(f'"{action}"' in one and f'rule="{rule}"' in one for one in counted), counted
        line = _until_line(audited, "review", lambda one: bool(one.get("would_deny")))
        assert "pod-resources/whole-number" in json.dumps(line["would_deny"])
        assert "gpu-requests/unknown-device" in json.dumps(line["would_warn"])


@contextmanager
def _audited(server: ApiServer, folder: Path, place: str) -> Iterator[Seen]:
    """Run a second server, which writes only audit annotations."""
    certificates, log = folder / "tls", folder / "audited.log"
    claimgate("certs", "issue", "--dir", str(certificates), "--service", place)
    with log.open("wb") as stream:
        process = subprocess.Popen([*_serve(server, certificates), "--enforcement-action=audit"], stderr=stream)
    try:
        port = _port(process, log)
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        metadata = {"name": "audited", "namespace": NAMESPACE}
        server.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        bundle = f"--ca-bundle={certificates / 'ca.crt'}"
        printed = claimgate("webhook-config", "--name", "audited", "--service", f"{place}:{port}", bundle)
        server.kubectl("create", "-f", "-", given=printed)
        yield Seen(Cluster(server, port, certificates, log), folder, folder)
        server.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "audited")
    finally:
        process.terminate()
        process.wait(30)


def _annotations(seen: Seen) -> dict[str, str]:
    """Return the last value of each of claimgate's audit annotations about RayClusters."""
    events = (json.loads(line) for line in seen.audit_log.read_text().splitlines())
    about = [one for one in events if (one.get("objectRef") or {}).get("resource") == "rayclusters"]
    return {key: value for one in about for key, value in (one.get("annotations") or {}).items() if "claimgate" in key}


NUMBERS = {
    "minReplicas above maxReplicas": (
        _ray_cluster("b", workerGroupSpecs=[{"groupName": "g", "replicas": 4, "minReplicas": 5, "maxReplicas": 3}]),
        "ray/replica-bounds",
    ),
    "a TTL without shutdown": (
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "metadata": {"name": "ttl"},
            "spec": {"ttlSecondsAfterFinished": 60, "entrypoint": "x", "rayClusterSpec": _ray_cluster("x")["spec"]},
        },
        "ray/ttl",
    ),
    "a misspelt device": (pod("c", {"nvidia.com/gpux": "1"}), "gpu-requests/unknown-device"),
}


@pytest.mark.parametrize(("obj", "rule"), NUMBERS.values(), ids=NUMBERS)
def test_wrong_numbers_and_names_are_reported(obj: dict[str, Any], rule: str, seen: Seen) -> None:
    assert rule in seen.says(obj, code=None)


def test_half_a_device_is_refused_in_the_mutating_phase_like_all(seen: Seen) -> None:
    for obj in (pod("half", HALF), _holding("half", HALF), _holding("all", ALL)):
        told = seen.says(obj)
        assert "(BadRequest)" in told, told
        assert "gpu-portable/" in told


def test_a_problem_that_an_update_does_not_make_worse_is_a_warning(seen: Seen) -> None:
    server: ApiServer = seen.cluster.server
    stored = mpi_job(4)
    server.kubectl("create", "-f", "-", "--as=breaker", given=yaml.safe_dump(stored))
    patch = ("patch", "mpijob.kubeflow.org", "j", "--type=merge", "-p")
    told = server.kubectl(*patch, '{"spec": {"slotsPerWorker": 7}}').stderr
    assert "the stored object has this problem already" in told
    assert "training-job/slots-for-ranks" in server.kubectl(*patch, '{"spec": {"slotsPerWorker": 3}}', code=1).stderr


def test_one_cause_of_all_webhooks_is_one_sentence_of_the_check(seen: Seen) -> None:
    server = seen.cluster.server
    printed = claimgate("webhook-config", "--name", "bare", "--service", f"{NAMESPACE}/claimgate")
    server.kubectl("create", "-f", "-", given=printed)
    told = claimgate("webhook-config", "--check", "--name", "bare", "--kubeconfig", str(server.kubeconfig), code=1)
    server.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "bare")
    assert told.count("there is no caBundle") == 1, told


def _until_line(seen: Seen, message: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for one in seen.cluster.lines(message):
            if holds(one):
                return one
        time.sleep(0.1)
    raise AssertionError(f"no line {message}: {seen.cluster.lines(message)[-3:]}")
