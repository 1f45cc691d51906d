"""The server may read exactly the objects that it requests from an API server."""

from __future__ import annotations

import io
from pathlib import Path

from tests.cluster.server import ApiServer, resources
from tests.literals import shipped_policies
from tests.yamldata import documents
from webhook.apimachinery.attributes import plural_of_kind
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.watch import WatchCluster
from webhook.logs.structured import Log

LOOKUPS = Path(__file__).parents[2] / "deploy" / "base" / "lookups.yaml"


def granted() -> set[tuple[str, str, str]]:
    """Return group, resource and name of the objects that the role allows; name "" means all."""
    return {
        (group, resource, name)
        for role in documents(LOOKUPS)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def requested(server: ApiServer) -> set[tuple[str, str, str]]:
    """Return group, resource and name of the objects that a server has listed and watched; name "" means all."""
    found = set()
    for path, query, _ in server.asked:
        if "limit" in query or "watch" in query:
            parts = path.strip("/").split("/")
            group = parts[1] if parts[0] == "apis" else ""
            found.add((group, parts[-1], query.get("fieldSelector", "").removeprefix("metadata.name=")))
    return found


def test_the_role_names_exactly_what_a_run_requests(tmp_path: Path) -> None:
    policies = shipped_policies()
    server = ApiServer()
    rows: dict[str, list[tuple[str, str, bool]]] = {}
    for interest in policies.interests():
        group, version, kind = interest.gvk
        row = policies.table.row(group, kind)
        place = f"/apis/{group}/{version}" if group else f"/api/{version}"
        rows.setdefault(place, []).append((row.resource if row else plural_of_kind(kind), kind, True))
    for place, listed in rows.items():
        server.answers[place] = resources(*listed)
        server.objects.update({f"{place}/{name}": [] for name, _, _ in listed})
    view = WatchCluster(
        connect_to_cluster(server.kubeconfig(tmp_path)), policies.interests(), Log(stream=io.StringIO())
    )
    try:
        view.start()
        assert view.wait_until_synced(20)
        assert requested(server) == granted()
    finally:
        view.close()
        server.shutdown()
        server.server_close()


def test_config_maps_are_named_and_secrets_are_not_read() -> None:
    names = {name for group, resource, name in granted() if (group, resource) == ("", "configmaps")}
    assert "" not in names
    assert {param["metadata"]["name"] for param in shipped_policies().params} <= names
    assert "secrets" not in {resource for _, resource, _ in granted()}
