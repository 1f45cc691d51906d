"""One pod template in every kind of the workload table: an API server gives the same answer as this process.

Published CustomResourceDefinitions are in the folder CLAIMGATE_CRDS, by default tests/data/crds. Other kinds get a
definition that accepts any field. Objects that the API server itself refuses are counted separately.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import PATIENCE_S, ApiServer, trust
from tests.e2e.conftest import CRDS, registered_webhook
from tests.evaluation.random_templates import random_change, random_template, random_validation
from tests.fuzz.live import warning_of_header
from tests.literals import OPTIONS, TABLE, mutating, namespace, validating
from tests.workloads.every_kind import objects_around
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.patch.schema import is_builtin_group
from webhook.policy.load import load_policy_set
from webhook.workloads.rows import Row

pytestmark = pytest.mark.e2e
COUNT: Final = 300
POLICIES: Final = 24
_LAST: Final = "last"


@dataclass(frozen=True, slots=True)
class Said:
    """The code and the text of a denial, the warnings, and the spec that would be stored."""

    code: int
    message: str
    warnings: tuple[str, ...]
    spec: JSON = None


def _written_policies() -> Iterator[dict[str, Any]]:
    """Yield policies about Pods of one namespace each. Half of them validate, and half of them mutate."""
    for number in range(POLICIES):
        random, name = Random(number), f"team-{number}"
        here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
        given = {"name": name, "annotations": {"expand": "pods"}, "binding": {"matchResources": here}}
        yield from (
            mutating(random_change(random), **given) if number % 2 else validating(random_validation(random), **given)
        )
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _LAST}}}
    yield from validating("false", name=_LAST, annotations={"expand": "pods"}, binding={"matchResources": here})


def _definition(row: Row) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": row.versions[0], "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{row.resource}.{row.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": row.group,
            "scope": "Namespaced" if row.namespaced else "Cluster",
            "names": {"kind": row.kind, "plural": row.resource, "singular": row.kind.lower()},
            "versions": [version],
        },
    }


def _published_definitions() -> dict[str, dict[str, Any]]:
    """Return the published CustomResourceDefinitions by name. Conversion webhooks are left out, because none would
    answer.
    """
    folder = os.environ.get("CLAIMGATE_CRDS")
    files = sorted(Path(folder).rglob("*.yaml")) if folder else CRDS
    read = [each for file in files for each in yaml.safe_load_all(file.read_text()) if isinstance(each, dict)]
    kept = [each for each in read if each.get("kind") == "CustomResourceDefinition"]
    return {each["metadata"]["name"]: {**each, "spec": {**each["spec"], "conversion": None}} for each in kept}


def _definitions() -> Iterator[tuple[Row, dict[str, Any], bool]]:
    """Yield a definition for each row of the table, and whether the definition is published."""
    published = _published_definitions()
    for row in TABLE.rows:
        if not is_builtin_group(row.group):
            found = published.get(f"{row.resource}.{row.group}")
            served = [each["name"] for each in found["spec"]["versions"] if each["served"]] if found else []
            is_published = found is not None and row.versions[0] in served
            yield row, found if found is not None and is_published else _definition(row), is_published


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("one-template")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "policies.yaml").write_text(yaml.safe_dump_all(_written_policies()))
    with apiserver.running(folder) as server:
        server.apply(*(each for _, each, _ in _definitions()))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        server.apply(*map(namespace, (*_namespaces(), _LAST)))
        with registered_webhook(server, folder, "--only", str(policies)), _client_of(server) as made:
            _wait_until_called(made)
            yield made


def _namespaces() -> list[str]:
    return [f"team-{number}" for number in range(POLICIES)]


def _client_of(server: ApiServer) -> httpx.Client:
    token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    headers = {"authorization": f"Bearer {token}"}
    return httpx.Client(verify=trust(server), headers=headers, base_url=server.url, timeout=60)


def _wait_until_called(client: httpx.Client) -> None:
    """Wait until a Pod and a custom kind are denied in the last namespace."""
    kinds = dict(
        objects_around({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    )
    end = time.monotonic() + PATIENCE_S
    for name in ("PodTemplate. template", "RayCluster.ray.io spec.headGroupSpec.template"):
        while _asked(client, _placed(kinds[name], _LAST)).code == httpx.codes.CREATED:
            assert time.monotonic() < end, f"the webhook is not called for {name}"
            time.sleep(0.2)


def _placed(obj: JSON, where: str) -> JSON:
    group, _, _ = obj["apiVersion"].rpartition("/")
    row = TABLE.row(group, obj["kind"])
    assert row is not None
    place = {"namespace": where} if row.namespaced else {}
    return {**obj, "metadata": {"name": obj["metadata"]["name"], **place}}


def _url(obj: JSON) -> str:
    group, _, version = obj["apiVersion"].rpartition("/")
    row = TABLE.row(group, obj["kind"])
    assert row is not None
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    place = f"/namespaces/{obj['metadata']['namespace']}" if row.namespaced else ""
    return f"{root}{place}/{row.resource}"


def _asked(client: httpx.Client, obj: JSON) -> Said:
    answer = client.post(_url(obj), params={"dryRun": "All", "fieldValidation": "Ignore"}, json=obj)
    warnings = tuple(sorted(map(warning_of_header, answer.headers.get_list("warning"))))
    body = answer.json()
    if answer.status_code == httpx.codes.CREATED:
        return Said(answer.status_code, "", warnings, body.get("spec"))
    return Said(answer.status_code, body["message"], warnings)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> LocalAnswerer:
    file = tmp_path_factory.mktemp("policies") / "policies.yaml"
    file.write_text(yaml.safe_dump_all(_written_policies()))
    cluster = FilesCluster([namespace(each) for each in _namespaces()])
    return LocalAnswerer(policies=load_policy_set([file], OPTIONS), cluster=cluster)


def _own(door: LocalAnswerer, obj: JSON) -> Said:
    outcome = run_phases(attributes_of_object(obj, TABLE.row), "auto", door)
    verdict = outcome.verdict
    if verdict.status and not verdict.allowed:
        return Said(verdict.status.code, verdict.status.message, tuple(sorted(verdict.warnings)))
    return Said(httpx.codes.CREATED, "", tuple(sorted(verdict.warnings)), outcome.patched_object.get("spec"))


def test_the_api_server_gives_the_same_answers_as_this_process(client: httpx.Client, here: LocalAnswerer) -> None:
    free = {(row.group, row.kind) for row, _, is_published in _definitions() if not is_published}
    compared, refused, different = Counter[str](), Counter[str](), []
    seed = 0
    while compared.total() < COUNT:
        seed += 1
        assert seed < COUNT, refused
        random = Random(seed)
        where = f"team-{seed % POLICIES}"
        for name, obj in random.sample([*objects_around(random_template(random))], 24):
            placed = _placed(obj, where)
            theirs = _asked(client, placed)
            if theirs.message and "denied the request: " not in theirs.message:
                refused[f"{name}: {theirs.code}"] += 1
                continue
            ours = _own(here, placed)
            is_free = (obj["apiVersion"].rpartition("/")[0], obj["kind"]) in free
            said = Said(theirs.code, theirs.message.partition("denied the request: ")[2], theirs.warnings)
            if is_free and not theirs.message:
                said = Said(said.code, said.message, said.warnings, theirs.spec)
            else:
                ours = Said(ours.code, ours.message, ours.warnings)
            compared["denied" if theirs.message else "changed" if int(where[5:]) % 2 else "allowed"] += 1
            if said != ours:
                different.append((seed, name, ours, said, placed))
    print(dict(compared), "refused by the API server:", refused.total())
    assert different[:3] == []
    assert min(compared["denied"], compared["changed"]) > COUNT // 10, compared
