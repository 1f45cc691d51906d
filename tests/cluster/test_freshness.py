"""The view ends a silent watch and starts it again; until then, the age of the view grows."""

import threading

from tests.cluster.server import CONFIG, CONFIGS, config, event, eventually, page, resources
from webhook.apimachinery.attributes import NAMESPACE
from webhook.cluster.freshness import WatchTimes, describe_old_answers, describe_staleness
from webhook.cluster.watch import WatchedCluster

QUICK = WatchTimes(least_s=1, slack_s=0.2)


def watches(server):
    return [query for path, query, _ in server.asked if path == CONFIGS and query.get("watch")]


def test_each_watch_asks_for_its_end_and_for_bookmarks(server, started):
    started(CONFIG)
    eventually(lambda: watches(server))
    (asked,) = watches(server)
    assert 30 <= int(asked["timeoutSeconds"]) <= 45
    assert asked["allowWatchBookmarks"] == "true"


def test_a_silent_watch_is_restarted_at_its_last_version(server, started):
    """The first watch stays connected, but the view no longer reads it. A second watch has the later events."""
    view = started(CONFIG, times=QUICK)
    assert view.wait_until_synced(5)
    server.send(CONFIGS, event("MODIFIED", config("a", "11", k="1")))
    eventually(lambda: view.get(CONFIG, "n", "a")["data"] == {"k": "1"})
    eventually(lambda: len(watches(server)) == 2)
    assert watches(server)[1]["resourceVersion"] == "11"
    assert view.failure_count == 1

    def is_followed():
        """Return whether the view gets an event. The silent watch gets the event too, because the server does not know
        that no client reads it.
        """
        server.send(CONFIGS, event("MODIFIED", config("a", "12", k="2")))
        return view.get(CONFIG, "n", "a")["data"] == {"k": "2"}

    eventually(is_followed)


def test_a_quiet_watch_that_ends_on_time_is_not_a_failure(server, started):
    view = started(CONFIG, times=WatchTimes(least_s=1, slack_s=5))
    eventually(lambda: watches(server))
    timer = threading.Timer(0.8, server.send, (CONFIGS, None))
    timer.start()
    eventually(lambda: len(watches(server)) == 2)
    assert view.failure_count == 0
    assert view.age_s < 5


def test_a_view_without_messages_is_reported_as_stale(server, started):
    view = started(CONFIG, times=QUICK)
    assert view.wait_until_synced(5)
    watched = WatchedCluster(view)
    assert watched.describe_failures() == ""
    server.answers[CONFIGS] = page(config("a"))
    server.is_silent = True
    eventually(lambda: view.age_s > QUICK.stale_s)
    eventually(lambda: " does not answer: timed out; reviews are still answered, from " in watched.describe_failures())
    assert watched.describe_failures().endswith(" s ago")
    assert watched.why_not_ready() == ""  # reviews are answered from the view as it was before
    server.is_silent = False
    eventually(lambda: watched.describe_failures() == "")


def test_the_text_says_how_old_answers_are():
    told = "nothing was heard from the API server for 93 s; reviews are answered from what was read before"
    assert describe_staleness(93.4) == told
    assert describe_old_answers(93.4) == "still answered, from what was read 94 s ago"
    assert describe_old_answers(0) == "still answered, from what was read 1 s ago"


def test_a_server_that_may_not_read_namespaces_is_not_ready_until_it_may(server, started):
    server.answers["/api/v1"] = resources(("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True))
    server.answers["/api/v1/namespaces"] = 403, {"message": "namespaces is forbidden"}
    view = started(NAMESPACE, CONFIG)
    assert view.wait_until_synced(5)
    watched = WatchedCluster(view)
    assert "namespaces is forbidden" in watched.why_not_ready()
    server.answers["/api/v1/namespaces"] = page()
    eventually(lambda: watched.why_not_ready() == "")


def test_a_kind_that_may_not_be_read_is_reported_by_its_policies(server, started):
    server.answers[CONFIGS] = 403, {"message": "configmaps is forbidden"}
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    assert "configmaps is forbidden" in WatchedCluster(view).describe_failures()
    assert WatchedCluster(view).why_not_ready() == ""
