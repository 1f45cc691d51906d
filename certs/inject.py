"""Telling API servers whom to trust: the bundle goes into every webhook of the named configurations.

Knows where caBundle stands in admissionregistration.k8s.io/v1; knows neither policies nor where the bundle comes from.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from certs import CertificateError
from certs.cluster import absent, refused

KINDS: Final = ("validating_webhook_configuration", "mutating_webhook_configuration")


@dataclass(frozen=True, slots=True)
class Injected:
    """One configuration, and how many of its webhooks got a bundle that they did not have."""

    kind: str
    name: str
    changed: int


def operations(configuration: Any, bundle: bytes) -> list[dict[str, Any]]:
    """The JSON Patch that puts the bundle into every webhook which has another one.

    A test of each webhook's name goes first, so that a list that changed meanwhile is not patched at wrong places.

    Args:
        configuration: a webhook configuration as plain JSON.
        bundle: PEM certificates.
    """
    wanted = base64.b64encode(bundle).decode()
    operations: list[dict[str, Any]] = []
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        if webhook.get("clientConfig", {}).get("caBundle") != wanted:
            path = f"/webhooks/{index}"
            operations.append({"op": "test", "path": f"{path}/name", "value": webhook["name"]})
            operations.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": wanted})
    return operations


def inject(client: Any, names: Sequence[str], bundle: bytes) -> tuple[Injected, ...]:
    """Put the bundle into the validating and mutating configurations of these names.

    Args:
        client: an ApiClient of the kubernetes package.
        names: each may exist in both kinds or in one.
        bundle: PEM certificates.

    Raises:
        CertificateError: a name exists in neither kind, or the cluster refuses.
    """
    from kubernetes.client import AdmissionregistrationV1Api

    api = AdmissionregistrationV1Api(client)
    done: list[Injected] = []
    for name in names:
        injected = [one for kind in KINDS if (one := _inject_one(api, client, kind, name, bundle)) is not None]
        if not injected:
            raise CertificateError(f"there is no webhook configuration `{name}`; apply it first")
        done.extend(injected)
    return tuple(done)


def _inject_one(api: Any, client: Any, kind: str, name: str, bundle: bytes) -> Injected | None:
    with refused(f"{kind.replace('_', ' ')} {name}"):
        current = absent(lambda: getattr(api, f"read_{kind}")(name))
        if current is None:
            return None
        patch = operations(client.sanitize_for_serialization(current), bundle)
        if patch:
            getattr(api, f"patch_{kind}")(name, patch)
    return Injected(kind, name, len(patch) // 2)
