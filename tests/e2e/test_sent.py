"""A plain object gets the same form as in a review of a real API server, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import Cluster
from tests.schema.test_sent import SENT
from webhook.admission.fixtures import group_version_kind_of_object
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.schema.sent import as_sent_by_api_server

pytestmark = pytest.mark.e2e
UNSEEN = {
    "status is not changed",
    # webhooks get []; kubectl reads what etcd stores as protobuf, which has no empty lists and no null bytes
    "an empty list that Go writes stays",
    "a null among bytes stays",
}


def differences(written: Any, ours: Any, theirs: Any, at: FieldPath = ()) -> Iterator[str]:
    """Yield the fields that differ. Fields that an API server fills in are left out."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs) == len(written):
        for index, pair in enumerate(zip(written, ours, theirs, strict=True)):
            yield from differences(*pair, (*at, index))
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **(written or {})}:
            if (name in ours) != (name in theirs):
                yield f"{path_as_text((*at, name))}: {ours.get(name, 'absent')} and {theirs.get(name, 'absent')}"
            elif name in ours:
                yield from differences(written.get(name), ours[name], theirs[name], (*at, name))
    elif ours != theirs:
        yield f"{path_as_text(at)}: {ours} and {theirs}"


@pytest.mark.parametrize("row", [name for name in SENT if name not in UNSEEN])
def test_the_api_server_has_the_same_result(cluster: Cluster, row: str) -> None:
    written, _ = SENT[row]
    given = yaml.safe_dump(written)
    options = ("--dry-run=server", "--validate=false", "-o", "json")
    made = json.loads(cluster.server.kubectl("create", *options, "-f", "-", given=given).stdout)
    assert list(differences(written, as_sent_by_api_server(written, group_version_kind_of_object(written)), made)) == []
