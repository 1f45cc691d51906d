"""The API server's answers about resources equal tests/data/policies/resources.jsonl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.resource_specs import KINDS, RUNTIME_CLASSES, all_specs, embedded
from tests.golden import compare_with_golden_file

pytestmark = pytest.mark.e2e

RECORDED = Path(__file__).parents[1] / "data" / "policies" / "resources.jsonl"
WHERE = {
    "Pod": "/api/v1/namespaces/default/pods",
    "PodTemplate": "/api/v1/namespaces/default/podtemplates",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
}


def client(server: apiserver.ApiServer) -> httpx.Client:
    user = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]
    headers = {"authorization": f"Bearer {user['token']}", "content-type": "application/json"}
    trust = apiserver.trust(server)
    return httpx.Client(base_url=server.url, verify=trust, headers=headers, timeout=30)


def refusal(api: httpx.Client, kind: str, spec: Any) -> str:
    """Return the message of a refusal, or "". Its causes are sorted, because Go iterates over maps in random order."""
    body = json.dumps(embedded(kind, spec))
    answer = api.post(WHERE[kind], params={"dryRun": "All", "fieldValidation": "Strict"}, content=body)
    if answer.is_success:
        return ""
    status = answer.json()
    causes = sorted(
        f"{each.get('field', '')}: {each['message']}" for each in status.get("details", {}).get("causes", ())
    )
    return f"{answer.status_code} {'; '.join(causes) or status['message']}"[:160]


def row(api: httpx.Client, spec: Any) -> Any:
    """Return a row: a spec, why a Pod with it is refused, and the other kinds that are refused."""
    said = {kind: refusal(api, kind, spec) for kind in KINDS}
    return {"spec": spec, "refusal": said["Pod"], "refused": [kind for kind in KINDS if said[kind]]}


def test_every_spec_is_answered_as_recorded(tmp_path_factory, pytestconfig):
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("resources")) as server:
        server.apply(*RUNTIME_CLASSES)
        with client(server) as api:
            written = "".join(f"{json.dumps(row(api, spec), separators=(',', ':'))}\n" for spec in all_specs())
    compare_with_golden_file(RECORDED, written, pytestconfig)
