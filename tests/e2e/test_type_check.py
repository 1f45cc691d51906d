"""Typical mistakes of authors: kube-apiserver warns only about expressions with known types.

A controller writes the warnings into status.typeChecking.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.commands.policy_mistakes import TYPED, UNSEEN
from tests.e2e import apiserver
from tests.e2e.apiserver import PATIENCE_S, ApiServer

pytestmark = pytest.mark.e2e
_CONTROLLER = "validatingadmissionpolicy-status-controller"


def _policies(rows: dict[str, Any], prefix: str) -> dict[str, Any]:
    numbered = {f"{prefix}{number:02}": policy for number, ((policy, _), _) in enumerate(rows.values())}
    return {
        name: {**policy, "metadata": {**policy["metadata"], "name": name}}
        for name, policy in numbered.items()
        if policy["kind"] == "ValidatingAdmissionPolicy"
    }


def _names_with_warnings(server: ApiServer) -> set[str]:
    items = json.loads(server.kubectl("get", "validatingadmissionpolicies", "-o", "json").stdout)["items"]
    return {
        one["metadata"]["name"]
        for one in items
        if one.get("status", {}).get("typeChecking", {}).get("expressionWarnings")
    }


def test_kube_apiserver_warns_about_the_same_type_errors(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := apiserver.without_controllers():
        pytest.skip(reason)
    unseen, typed = _policies(UNSEEN, "unseen"), _policies(TYPED, "typed")
    with apiserver.running(tmp_path_factory.mktemp("types")) as server, apiserver.controllers(server, _CONTROLLER):
        server.apply(*unseen.values())
        server.apply(*typed.values())
        end = time.monotonic() + PATIENCE_S
        while not _names_with_warnings(server) >= set(typed) and time.monotonic() < end:
            time.sleep(0.5)
        assert _names_with_warnings(server) == set(typed)
