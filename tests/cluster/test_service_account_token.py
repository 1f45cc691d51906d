"""The fix for refused credentials names only the ServiceAccount of the token."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from webhook.cluster.service_account_token import fix_of_refused_token

ELSEWHERE = "write other credentials into the kubeconfig: those in it are not valid or have expired"
EXISTS = (
    "check that the ServiceAccount exists: `kubectl -n gpu-guard get serviceaccount checker`; "
    "if it was deleted and created again, "
)
SUBJECT = "system:serviceaccount:gpu-guard:checker"


def _bearer(claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer e30.{payload}.c2ln"


TOKENS = {
    "of a Pod": (
        _bearer({"sub": SUBJECT, "kubernetes.io": {"pod": {"name": "checker-7d9f-x2x4"}}}),
        f"{EXISTS}delete this Pod, so that a new Pod gets a token: `kubectl -n gpu-guard delete pod checker-7d9f-x2x4`",
    ),
    "of no Pod": (_bearer({"sub": SUBJECT, "kubernetes.io": []}), f"{EXISTS}start claimgate with a new token"),
    "of a user": (_bearer({"sub": "jane"}), ELSEWHERE),
    "of a name that is no name": (_bearer({"sub": "system:serviceaccount:a b:`rm`"}), ELSEWHERE),
    "with a list": (_bearer(["sub"]), ELSEWHERE),
    "deeper than Python reads": ("Bearer e30." + base64.b64encode(b"[" * 100_000).decode() + ".c2ln", ELSEWHERE),
    "without the form": ("Bearer secret", ELSEWHERE),
    "of bytes that are no text": ("Bearer a._w.b", ELSEWHERE),
    "for a client certificate": ("", ELSEWHERE),
}


@pytest.mark.parametrize(("authorization", "fix"), TOKENS.values(), ids=TOKENS)
def test_the_fix_names_the_account_and_the_pod_of_the_token(authorization: str, fix: str) -> None:
    assert fix_of_refused_token(authorization) == fix
