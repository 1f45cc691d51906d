"""Writes the bundle of trusted authorities into the caBundle of all webhooks (admissionregistration.k8s.io/v1)."""

from __future__ import annotations

import base64
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from certs import CertificateError
from certs.cluster import none_if_absent, refused

OwnerReference: TypeAlias = dict[str, str]
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----\n"
KINDS: Final = ("validating_webhook_configuration", "mutating_webhook_configuration")


@dataclass(frozen=True, slots=True)
class Injected:
    """A configuration, and how many of its webhooks got a new bundle."""

    kind: str
    name: str
    changed: int


def operations(configuration: Any, bundle: bytes) -> list[dict[str, Any]]:
    """Return the JSON Patch that puts the bundle into each webhook that has another bundle or none.

    The patch first tests the name of each webhook: a changed list is not patched.
    """
    wanted = base64.b64encode(bundle).decode()
    operations: list[dict[str, Any]] = []
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        if webhook.get("clientConfig", {}).get("caBundle") != wanted:
            path = f"/webhooks/{index}"
            operations.append({"op": "test", "path": f"{path}/name", "value": webhook["name"]})
            operations.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": wanted})
    return operations


def owner_patch(configuration: Any, owner: OwnerReference | None) -> list[dict[str, Any]]:
    """Return the JSON Patch that makes a namespace an owner of a configuration; without a namespace, no change.

    The deletion of the namespace then deletes the configuration. Otherwise API servers would call a missing server, and
    with `failurePolicy: Fail` users could not create Pods.
    """
    metadata = configuration["metadata"]
    others = [one for one in metadata.get("ownerReferences") or () if one["kind"] != "Namespace"]
    if owner is None or [*others, owner] == (metadata.get("ownerReferences") or []):
        return []
    test = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
    return [test, {"op": "add", "path": "/metadata/ownerReferences", "value": [*others, owner]}]


def inject(client: Any, names: Sequence[str], bundle: bytes, owner_namespace: str = "") -> tuple[Injected, ...]:
    """Put the bundle into the validating and mutating configurations of these names.

    Args:
        client: an ApiClient of the kubernetes package.
        names: each may exist in both kinds or in one.
        bundle: PEM certificates.
        owner_namespace: becomes an owner of the configurations.

    Raises:
        CertificateError: a name exists in neither kind, or the cluster refuses.
    """
    from kubernetes.client import AdmissionregistrationV1Api

    api = AdmissionregistrationV1Api(client)
    owner = _reference(client, owner_namespace) if owner_namespace else None
    done: list[Injected] = []
    for name in names:
        both = (_inject_one(api, client, (kind, name), bundle, owner) for kind in KINDS)
        injected = [one for one in both if one is not None]
        if not injected:
            raise CertificateError(f"there is no webhook configuration `{name}`; apply it first")
        done.extend(injected)
    return tuple(done)


def bundle_of(client: Any, names: Sequence[str]) -> bytes:
    """Return every certificate that these configurations trust, each once.

    Raises:
        CertificateError: the cluster refuses.
    """
    from kubernetes.client import AdmissionregistrationV1Api

    api = AdmissionregistrationV1Api(client)
    bundles: dict[bytes, None] = {}
    for kind, name in itertools.product(KINDS, names):
        with refused(f"{kind.replace('_', ' ')} {name}"):
            current = none_if_absent(functools.partial(getattr(api, f"read_{kind}"), name))
        for webhook in (current.webhooks or ()) if current is not None else ():
            bundles[base64.b64decode(webhook.client_config.ca_bundle or "")] = None
    certificates = dict.fromkeys(one for bundle in bundles for one in bundle.split(_BEGIN)[1:])
    return b"".join(_BEGIN + one.rstrip() + b"\n" for one in certificates)


def _reference(client: Any, namespace: str) -> OwnerReference:
    from kubernetes.client import CoreV1Api

    with refused(f"namespace {namespace}"):
        owner = client.sanitize_for_serialization(CoreV1Api(client).read_namespace(namespace))
    return {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": owner["metadata"]["uid"]}


def _inject_one(
    api: Any, client: Any, place: tuple[str, str], bundle: bytes, owner: OwnerReference | None
) -> Injected | None:
    kind, name = place
    with refused(f"{kind.replace('_', ' ')} {name}"):
        current = none_if_absent(lambda: getattr(api, f"read_{kind}")(name))
        if current is None:
            return None
        configuration = client.sanitize_for_serialization(current)
        patch = operations(configuration, bundle)
        if both := [*owner_patch(configuration, owner), *patch]:
            getattr(api, f"patch_{kind}")(name, both)
    return Injected(kind, name, len(patch) // 2)
