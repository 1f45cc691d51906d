"""`webhook-config --check --live` names objects of earlier versions that nothing deletes."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.server import ApiServer
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import ClusterReader
from webhook.commands.installation import REMOVED_OBJECTS, leftovers


def test_each_object_of_an_earlier_version_is_named_with_the_command_that_deletes_it(
    server: ApiServer, tmp_path: Path
) -> None:
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    assert list(leftovers(cluster, "gates")) == []
    server.answers["/apis/batch/v1/namespaces/gates/cronjobs/claimgate-certificates"] = 200, {"kind": "CronJob"}
    (line,) = leftovers(cluster, "gates")
    assert line.startswith("CronJob gates/claimgate-certificates: no version after 0.1.0 installs it")
    assert line.endswith(": `kubectl -n gates delete cronjob claimgate-certificates`")
    for one in REMOVED_OBJECTS:
        server.answers[f"{one.api}/namespaces/gates/{one.kind.lower()}s/{one.name}"] = 200, {}
    assert len(list(leftovers(cluster, "gates"))) == len(REMOVED_OBJECTS)
