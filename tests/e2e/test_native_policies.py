"""Kubernetes accepts exported policies, with the same effect."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import Cluster
from webhook.input import shipped

pytestmark = pytest.mark.e2e
FOLDERS = sorted(path.parent for path in Path(shipped.policies_folder()).glob("*/policy.yaml"))


def native(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the policies that use only CEL. The reason BadRequest is left out, because the API server does not accept
    it.
    """
    for policy in yaml.safe_load_all((folder / "policy.yaml").read_text()):
        if not {"claimgate.dev/facts", "claimgate.dev/checks"} & set(policy["metadata"].get("annotations", {})):
            made = copy.deepcopy(policy)
            for rule in made["spec"].get("validations", ()):
                if rule.get("reason") == "BadRequest":
                    rule["reason"] = "Invalid"
            yield made


@pytest.mark.parametrize("folder", [each for each in FOLDERS if any(native(each))], ids=lambda folder: folder.name)
def test_the_api_server_accepts_every_policy_without_facts(cluster: Cluster, folder: Path) -> None:
    for policy in native(folder):
        made = yaml.safe_dump(policy)
        cluster.server.kubectl("create", "--dry-run=server", "-f", "-", given=made)
