"""A real API server sends only metadata if policies read nothing else. It refuses a patch of an object that has changed
meanwhile.
"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Cluster
from webhook.cluster.connection import METADATA, METADATA_LIST, ServerRefused, connect_to_cluster

pytestmark = pytest.mark.e2e

CONFIGS = "/api/v1/namespaces/default/configmaps"


def test_lists_watches_and_single_objects_have_no_data(cluster: Cluster) -> None:
    cluster.server.kubectl("create", "configmap", "large", "--from-literal=a=b")
    connection = connect_to_cluster(cluster.server.kubeconfig)
    page = connection.page(CONFIGS, {"fieldSelector": "metadata.name=large"}, METADATA_LIST)
    (listed,) = page
    single = connection.get_metadata(f"{CONFIGS}/large")
    watch = {"watch": "true", "timeoutSeconds": "2", "fieldSelector": "metadata.name=large"}
    (event,) = connection.stream(CONFIGS, watch, 30, METADATA)
    for obj in (listed, single, event["object"]):
        assert (obj["metadata"]["name"], obj["kind"]) == ("large", "PartialObjectMetadata")
        assert "data" not in obj


def test_a_patch_of_a_changed_object_says_that_it_changed(cluster: Cluster) -> None:
    cluster.server.kubectl("create", "configmap", "changed", "--from-literal=a=b")
    test = {"op": "test", "path": "/data/a", "value": "c"}
    connection = connect_to_cluster(cluster.server.kubeconfig)
    with pytest.raises(ServerRefused, match=r"/changed: another program changed it at the same time$"):
        connection.patch(f"{CONFIGS}/changed", [test], "test", 10)
    with pytest.raises(ServerRefused, match=r"is invalid: .*metadata\.labels"):
        connection.patch(
            f"{CONFIGS}/changed", [{"op": "add", "path": "/metadata/labels", "value": {"/": "a"}}], "t", 10
        )
