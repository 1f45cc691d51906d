"""The fix for refused credentials names only the ServiceAccount of the token."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from webhook.cluster.connection import fix_of_refused_token

ELSEWHERE = "write other credentials into the kubeconfig: the present credentials are not valid or have expired"
EXISTS = (
    "check that the ServiceAccount exists: `kubectl -n gpu-guard get serviceaccount checker`; "
    "if it was deleted and created again, "
)
SUBJECT = "system:serviceaccount:gpu-guard:checker"


def _bearer(claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer e30.{payload}.c2ln"


TOKENS = {
    "the token of a Pod": (
        _bearer({"sub": SUBJECT, "kubernetes.io": {"pod": {"name": "checker-7d9f-x2x4"}}}),
        f"{EXISTS}delete this Pod, so that a new Pod gets a token: `kubectl -n gpu-guard delete pod checker-7d9f-x2x4`",
    ),
    "a token without a Pod": (
        _bearer({"sub": SUBJECT, "kubernetes.io": []}),
        f"{EXISTS}start claimgate with a new token",
    ),
    "the token of a user": (_bearer({"sub": "jane"}), ELSEWHERE),
    "a token with an invalid name": (_bearer({"sub": "system:serviceaccount:a b:`rm`"}), ELSEWHERE),
    "a token with a list in place of an object": (_bearer(["sub"]), ELSEWHERE),
    "a token with JSON that is too deep for Python": (
        "Bearer e30." + base64.b64encode(b"[" * 100_000).decode() + ".c2ln",
        ELSEWHERE,
    ),
    "a text that is not a token": ("Bearer secret", ELSEWHERE),
    "bytes that are not text": ("Bearer a._w.b", ELSEWHERE),
    "a client certificate": ("", ELSEWHERE),
}


@pytest.mark.parametrize(("authorization", "fix"), TOKENS.values(), ids=TOKENS)
def test_the_fix_names_the_account_and_the_pod_of_the_token(authorization: str, fix: str) -> None:
    assert fix_of_refused_token(authorization) == fix
