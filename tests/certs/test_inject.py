"""The bundle in webhook configurations: which operations, and only where something changes."""

from __future__ import annotations

import base64
from typing import Any

from certs.inject import operations

BUNDLE = b"-----BEGIN CERTIFICATE-----\n"
ENCODED = base64.b64encode(BUNDLE).decode()


def configuration(*bundles: str | None) -> dict[str, Any]:
    def one(index: int, bundle: str | None) -> dict[str, Any]:
        service = {"service": {"name": "claimgate"}}
        return {
            "name": f"w{index}.x.io",
            "clientConfig": service if bundle is None else {**service, "caBundle": bundle},
        }

    return {"webhooks": [one(index, bundle) for index, bundle in enumerate(bundles)]}


def test_only_webhooks_with_another_bundle_are_patched_and_named_first() -> None:
    assert operations(configuration(None, ENCODED, "b2xk"), BUNDLE) == [
        {"op": "test", "path": "/webhooks/0/name", "value": "w0.x.io"},
        {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ENCODED},
        {"op": "test", "path": "/webhooks/2/name", "value": "w2.x.io"},
        {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": ENCODED},
    ]


def test_where_every_webhook_has_it_nothing_is_left_to_do() -> None:
    assert operations(configuration(ENCODED, ENCODED), BUNDLE) == []


def test_a_configuration_without_webhooks_is_left_alone() -> None:
    assert operations({}, BUNDLE) == []
