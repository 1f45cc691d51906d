"""The CA bundle is written into webhook configurations, and only if it changes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from certs.inject import operations, owner_patch

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


def test_no_change_is_needed_if_every_webhook_has_the_bundle() -> None:
    assert operations(configuration(ENCODED, ENCODED), BUNDLE) == []


def test_a_configuration_without_webhooks_is_not_changed() -> None:
    assert operations({}, BUNDLE) == []


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "name": "claimgate-system", "uid": "2"}
BEFORE = {**NAMESPACE, "uid": "1"}
RELEASE = {"apiVersion": "example.com/v1", "kind": "Release", "name": "r", "uid": "3"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, [NAMESPACE]),
        ([RELEASE], [RELEASE, NAMESPACE]),
        ([BEFORE], [NAMESPACE]),  # the namespace was created again: with the old uid, garbage collection would follow
        ([RELEASE, NAMESPACE], None),
    ],
)
def test_a_namespace_owns_its_configuration_together_with_other_owners(before: Any, after: Any) -> None:
    references = {} if before is None else {"ownerReferences": before}
    patch = owner_patch({"metadata": {"uid": "u", **references}}, NAMESPACE)
    expected = [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "add", "path": "/metadata/ownerReferences", "value": after},
    ]
    assert patch == ([] if after is None else expected)


def test_without_an_owner_no_owner_reference_is_written() -> None:
    assert owner_patch({"metadata": {"uid": "u"}}, None) == []
