"""A real API server sends only the metadata of objects if policies read nothing else."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Cluster
from webhook.cluster.connection import METADATA, METADATA_LIST, connect_to_cluster

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
