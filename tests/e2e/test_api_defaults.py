"""Decoding, encoding and defaults change an object of a file in the same way as a real API server.

What an API server adds later is not compared: names, status, the selector of a Job, and the work of its plugins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import trust
from tests.e2e.seen_fields import OF_SERVER
from tests.evaluation.random_templates import random_template
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON
from webhook.yamltext.jsontext import equal_as_json

pytestmark = pytest.mark.e2e
PLUGINS: Final = "ServiceAccount,DefaultTolerationSeconds,Priority,RuntimeClass,LimitRanger,DefaultStorageClass,TaintNodesByCondition"
"""Admission plugins that change objects before policies see them, or refuse objects that name an absent object."""


def _before_storage(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_before_storage(each) for each in value] or None
    if not isinstance(value, dict):
        return value
    kept = {key: _before_storage(each) for key, each in value.items() if key not in OF_SERVER}
    return {key: each for key, each in kept.items() if key not in ("annotations", "labels") or each}


def comparable(obj: JSON) -> JSON:
    """Return the object without additions of an API server, empty lists, and nulls among bytes. The storage of the API
    server drops the last two.
    """
    for name in ("data", "binaryData"):
        if obj["kind"] in ("ConfigMap", "Secret") and name in obj:
            obj = {**obj, name: {key: each or "" for key, each in obj[name].items()}}
    if obj["kind"] == "Job":
        obj = {**obj, "spec": {key: value for key, value in obj["spec"].items() if key != "selector"}}
    return _before_storage({key: value for key, value in obj.items() if key != "status"})


def _accepted(template: JSON, *restart: str) -> JSON:
    """Return the template with changes so that the API server accepts it. `restart` has the restart policies that the
    kind allows.
    """
    spec = dict(template["spec"])
    volumes = spec["volumes"] = [{"name": "v"}, *(spec.get("volumes") or [])[1:]]
    spec["tolerations"] = (spec.get("tolerations") or [])[:1] and [{"key": "a", "operator": "", "value": ""}]
    for name in ("containers", "initContainers"):
        spec[name] = spec.get(name) and [_accepted_container(each, name) for each in spec[name]]
    if spec.get("restartPolicy") not in restart:
        spec["restartPolicy"] = restart[0]
    spec["volumes"] = [_accepted_volume(each) for each in volumes]
    metadata = template.get("metadata") or {}
    labels = {key: value or "" for key, value in (metadata.get("labels") or {}).items()}
    return {"metadata": {**metadata, "labels": {**labels, "app": "x"}}, "spec": spec}


def _accepted_container(container: JSON, listed: str) -> JSON:
    made = {**container, "image": container.get("image") or "i"}
    probe = made.pop("livenessProbe", None)
    if listed == "containers" and probe:
        made["livenessProbe"] = probe if "httpGet" in probe else {**probe, "exec": {"command": ["a"]}}
    resources = made.get("resources") or {}
    limits = {name: amount for name, amount in (resources.get("limits") or {}).items() if amount}
    requests = {"memory": resources["requests"]["memory"]} if (resources.get("requests") or {}).get("memory") else {}
    return {**made, "resources": {"limits": {**limits, "memory": "2Gi"}, "requests": requests}}


def _accepted_volume(volume: JSON) -> JSON:
    return {"name": volume["name"]} if "secret" in volume else volume


def _objects(random: Random) -> Iterator[tuple[str, JSON]]:
    """Yield objects with a random template. Other fields of their kind are absent, null or empty at random."""
    pick = random.choice
    written = random_template(random)
    template, job = _accepted(written, "", "Always"), _accepted(written, "Never", "OnFailure")
    selector = {"matchLabels": {"app": "x"}}
    absent: tuple[JSON, ...] = ({}, {"replicas": None}, {"replicas": 0}, {"replicas": 2})
    strategy = pick(({}, {"strategy": None}, {"strategy": {}}, {"strategy": {"type": "Recreate"}}))
    yield "/api/v1/namespaces/default/pods", _of("v1", "Pod", template["spec"], template["metadata"])
    yield (
        "/apis/apps/v1/namespaces/default/deployments",
        _of("apps/v1", "Deployment", {**pick(absent), **strategy, "selector": selector, "template": template}),
    )
    yield (
        "/apis/apps/v1/namespaces/default/statefulsets",
        _of("apps/v1", "StatefulSet", {**pick(absent), "serviceName": "s", "selector": selector, "template": template}),
    )
    yield (
        "/apis/apps/v1/namespaces/default/daemonsets",
        _of("apps/v1", "DaemonSet", {"updateStrategy": pick((None, {})), "selector": selector, "template": template}),
    )
    parallel = pick(({}, {"parallelism": 2}, {"completions": 3}, {"completions": None, "suspend": False}))
    yield "/apis/batch/v1/namespaces/default/jobs", _of("batch/v1", "Job", {**parallel, "template": job})
    yield (
        "/apis/batch/v1/namespaces/default/cronjobs",
        _of(
            "batch/v1",
            "CronJob",
            {"schedule": "* * * * *", "jobTemplate": {"spec": {**parallel, "template": job}}},
        ),
    )
    ports = pick((None, [{"port": 80}], [{"name": "a", "port": 80, "targetPort": "x", "protocol": ""}]))
    kind = pick(({}, {"type": ""}, {"type": "LoadBalancer"}, {"sessionAffinity": "ClientIP"}))
    yield (
        "/api/v1/namespaces/default/services",
        _of("v1", "Service", {**kind, "ports": ports or [{"port": 1}], "selector": pick(({}, None, {"a": "b"}))}),
    )
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": pick((1, "1Gi", "1024Mi"))}}}
    yield (
        "/api/v1/namespaces/default/persistentvolumeclaims",
        _of("v1", "PersistentVolumeClaim", {**claim, **pick(({}, {"volumeMode": None}, {"storageClassName": ""}))}),
    )
    yield (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        _of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            {"podSelector": pick(({}, None)), **pick(({}, {"egress": []}, {"egress": [{"ports": [{"port": 1}]}]}))},
        ),
    )
    yield (
        "/api/v1/namespaces/default/limitranges",
        _of(
            "v1",
            "LimitRange",
            {"limits": [{"type": pick(("Container", "Pod")), "max": {"cpu": pick((2, "2", "2000m"))}}]},
        ),
    )


def _of(api_version: str, kind: str, spec: JSON, metadata: JSON = None) -> JSON:
    named = {**(metadata or {}), "name": "x", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": named, "spec": spec}


def differences(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            if name not in ours or name not in theirs:
                yield f"{at}.{name}: {ours.get(name, 'absent')} and {theirs.get(name, 'absent')}"
            else:
                yield from differences(ours[name], theirs[name], f"{at}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, f"{at}[{index}]")
    elif not equal_as_json(ours, theirs):
        yield f"{at}: {ours} and {theirs}"


def test_merged_objects_equal_those_of_the_api_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder: Path = tmp_path_factory.mktemp("defaults")
    compared: Counter[str] = Counter()
    with apiserver.running(folder, f"--disable-admission-plugins={PLUGINS}") as server:
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        options = {"dryRun": "All", "fieldValidation": "Ignore"}
        with httpx.Client(verify=trust(server), headers=headers, base_url=server.url, timeout=60) as client:
            seed = 0
            while compared.total() < 1000:
                seed += 1
                for path, written in _objects(Random(seed)):
                    answer = client.post(path, params=options, json=written)
                    if answer.status_code == 201:
                        theirs, ours = comparable(answer.json()), comparable(attributes_of_object(written).object)
                        assert [*differences(ours, theirs)] == [], (seed, written)
                        compared[written["kind"]] += 1
    assert len(compared) == 10, compared
