"""The kinds of a cluster, and lists that are read page by page, even if their revision is compacted meanwhile."""

import pytest

from tests.cluster.server import config, page
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import ServerRefused, connect_to_cluster
from webhook.cluster.discovery import ServedResource
from webhook.cluster.live_objects import MOST_RESUMED, ServedKind, objects_of_kind, served_kinds

CONFIGS = ServedKind(GroupVersionKind("", "v1", "ConfigMap"), ServedResource("/api/v1", "configmaps", "v1", True))
LIST = "/api/v1/configmaps"


@pytest.fixture
def connection(server, tmp_path):
    return connect_to_cluster(server.kubeconfig(tmp_path))


def resource(name, kind, *, verbs=("list",), namespaced=True):
    return {"name": name, "kind": kind, "namespaced": namespaced, "verbs": list(verbs)}


def group(name, *versions, preferred):
    listed = [{"version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": {"version": preferred}}


def gone(token):
    return 410, {"kind": "Status", "message": "too old", "reason": "Expired", "metadata": {"continue": token}}


def names(connection, **scope):
    return [each["metadata"]["name"] for each in objects_of_kind(connection, CONFIGS, **scope)]


@pytest.fixture
def groups(server):
    server.answers["/api/v1"] = (
        200,
        {
            "resources": [
                resource("pods", "Pod"),
                resource("pods/status", "Pod"),
                resource("bindings", "Binding", verbs=("create",)),
            ]
        },
    )
    listed = [group("batch", "v1beta1", "v1", preferred="v1"), group("gone.example.com", "v1", preferred="v1")]
    server.answers["/apis"] = 200, {"groups": listed}
    server.answers["/apis/batch/v1"] = 200, {"resources": [resource("jobs", "Job")]}
    server.answers["/apis/batch/v1beta1"] = (
        200,
        {"resources": [resource("jobs", "Job"), resource("cronjobs", "CronJob")]},
    )
    server.answers["/apis/gone.example.com/v1"] = 503, {"message": "the service is away"}


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("wanted", "served"),
    [
        pytest.param([("", "pods"), ("", "bindings")], ["v1 Pod"], id="what can be listed"),
        pytest.param([("batch", "jobs"), ("batch", "cronjobs")], ["batch/v1 Job", "batch/v1beta1 CronJob"], id="older"),
        pytest.param([("*", "jobs")], ["batch/v1 Job"], id="any group"),
        pytest.param([("batch", "*")], ["batch/v1 Job", "batch/v1beta1 CronJob"], id="any resource"),
        pytest.param([("gone.example.com", "*")], [], id="a server that is away"),
        pytest.param([("example.com", "things")], [], id="a kind that is not served"),
    ],
)
def test_a_needed_kind_is_read_in_the_preferred_version(connection, wanted, served):
    assert [f"{each.kind.api_version} {each.kind.kind}" for each in served_kinds(connection, wanted)] == served


def test_all_pages_are_read_and_each_object_says_its_kind(connection, server):
    server.objects[LIST] = [{"metadata": {"name": f"c{number}", "namespace": "n"}} for number in range(600)]
    listed = list(objects_of_kind(connection, CONFIGS))
    assert [each["metadata"]["name"] for each in listed] == [f"c{number}" for number in range(600)]
    assert {(each["apiVersion"], each["kind"]) for each in listed} == {("v1", "ConfigMap")}


def test_namespace_and_selector_are_sent_to_the_server(connection, server):
    server.answers["/api/v1/namespaces/a/configmaps"] = page(config("x"))
    assert names(connection, namespace="a", selector="app=x") == ["x"]
    assert server.asked[-1][1]["labelSelector"] == "app=x"


def test_an_expired_list_continues_at_the_token_of_the_server(connection, server):
    server.answers[LIST] = page(config("a"), more="one")
    server.answers[f"{LIST}?one"] = gone("two")
    server.answers[f"{LIST}?two"] = page(config("b"))
    assert names(connection) == ["a", "b"]


def test_a_list_that_always_expires_ends(connection, server):
    server.answers[LIST] = page(config("a"), more="one")
    server.answers[f"{LIST}?one"] = gone("one")
    with pytest.raises(ServerRefused, match="too old"):
        names(connection)
    assert len([asked for asked in server.asked if asked[0] == LIST]) == MOST_RESUMED + 2


def test_a_refusal_says_why(connection, server):
    server.answers[LIST] = 403, {"message": 'configmaps is forbidden: User "x" cannot list'}
    with pytest.raises(ServerRefused, match="cannot list"):
        names(connection)
