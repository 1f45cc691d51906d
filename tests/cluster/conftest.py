"""An API server for the tests, and views of it."""

import io

import pytest

from tests.cluster.server import CONFIGS, TIMES, ApiServer, config, page, resources
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.interest import Interest
from webhook.cluster.watch import WatchCluster
from webhook.logs.structured import Log


@pytest.fixture
def server():
    server = ApiServer()
    server.answers["/api/v1"] = resources(("configmaps/status", "ConfigMap", True), ("configmaps", "ConfigMap", True))
    server.answers[CONFIGS] = page(config("a"))
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def started(server, tmp_path):
    """Return a function that starts a view of kinds. The threads of the view end after the test."""
    views = []

    def start(*kinds, log=None, times=TIMES, most_bytes=None):
        link = connect_to_cluster(server.kubeconfig(tmp_path))
        interests = [each if isinstance(each, Interest) else Interest(each) for each in kinds]
        views.append(
            WatchCluster(
                link, interests, log or Log(stream=io.StringIO()), (0.01, 0.05), times=times, most_bytes=most_bytes
            )
        )
        views[-1].start()
        return views[-1]

    yield start
    for view in views:
        view.close()
