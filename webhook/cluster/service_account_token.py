"""Finds the ServiceAccount of a token that an API server refuses, and says what to do.

The token is not verified, because it is claimgate's own. Source: the claims of k8s.io/kubernetes v1.36
pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from webhook.apimachinery.names import dns1123_subdomain_errors

_SUBJECT: Final = "system:serviceaccount:"
_ELSEWHERE: Final = "write other credentials into the kubeconfig: those in it are not valid or have expired"


def fix_of_refused_token(authorization: str) -> str:
    """Return the fix for credentials that an API server refuses.

    Args:
        authorization: the header that was sent, "Bearer TOKEN"; "" for a client certificate or nothing.
    """
    claims = _claims(authorization.rpartition(" ")[2])
    namespace, _, name = str(claims.get("sub") or "").removeprefix(_SUBJECT).partition(":")
    if not _are_names(namespace, name):
        return _ELSEWHERE
    bound = claims.get("kubernetes.io")
    pod = bound.get("pod") if isinstance(bound, dict) else None
    pod_name = str(pod.get("name") or "") if isinstance(pod, dict) else ""
    replace = (
        f"delete this Pod, so that a new Pod gets a token: `kubectl -n {namespace} delete pod {pod_name}`"
        if _are_names(pod_name)
        else "start claimgate with a new token"
    )
    exists = f"`kubectl -n {namespace} get serviceaccount {name}`"
    return f"check that the ServiceAccount exists: {exists}; if it was deleted and created again, {replace}"


def _claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a token in JWS compact form; empty for any other text."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _are_names(*texts: str) -> bool:
    return all(text and not dns1123_subdomain_errors(text) for text in texts)
