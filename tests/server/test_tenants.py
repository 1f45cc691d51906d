"""Which tenant pays for the processor time of a request."""

from __future__ import annotations

import pytest

from tests.server.asgi import review_of
from webhook.admission.decode import decode_review
from webhook.server.pages import create
from webhook.server.probes import create_probes
from webhook.server.server_parts import Readiness
from webhook.server.usage import PAGES, Tenant, handshake_tenant, page_tenant, tenant_of

ADDRESS = "192.0.2.1"


def tenant(user: str, namespace: str = "team-a") -> Tenant:
    return tenant_of(decode_review(review_of(userInfo={"username": user}, namespace=namespace)), ADDRESS)


def test_pages_for_people_have_their_own_account():
    assert tenant("ann") == Tenant("team-a", "ann", ADDRESS)
    assert tenant("a" * 1000) == Tenant("team-a", "a" * 512, ADDRESS)


def test_all_service_accounts_of_a_namespace_are_one_user():
    assert tenant("system:serviceaccount:team-b:one") == tenant("system:serviceaccount:team-b:two")
    assert tenant("system:serviceaccount:team-b:one") != tenant("system:serviceaccount:team-c:one")


@pytest.mark.parametrize(
    "user", ["system:serviceaccount:kube-system:replicaset-controller", "system:kube-controller-manager"]
)
def test_controllers_act_for_the_namespace(user: str):
    assert tenant(user) == Tenant("team-a", "", ADDRESS)


def test_unreadable_reviews_and_pages_have_separate_accounts():
    assert tenant_of(None, ADDRESS) == Tenant("", "", ADDRESS)
    assert page_tenant("/docs", "192.0.2.1") != page_tenant("/docs", "192.0.2.2")
    assert "/" in page_tenant("/docs", "").namespace


def test_unknown_paths_share_one_account():
    assert page_tenant("/a", ADDRESS) == page_tenant("/b" * 2000, ADDRESS) == page_tenant("", ADDRESS)
    assert "/" in page_tenant("/a", ADDRESS).namespace
    assert page_tenant("/docs", ADDRESS) != page_tenant("/metrics", ADDRESS) != page_tenant("/a", ADDRESS)


def test_every_page_has_an_account():
    pages = create(lambda _pause: None, {"version": "1"})
    served = {route.path for route in pages.routes} | create_probes(Readiness()).keys()
    assert served == PAGES, "add the path to PAGES in webhook/server/usage.py"


def test_a_busy_client_does_not_delay_probes_or_handshakes_of_others():
    flood, kubelet = page_tenant("/healthz", "192.0.2.1"), page_tenant("/healthz", "192.0.2.2")
    assert flood.namespace != kubelet.namespace
    assert flood.user == page_tenant("/readyz", "192.0.2.1").user == ""  # only reviews have a user
    shaking = handshake_tenant("192.0.2.1")
    assert shaking.namespace != handshake_tenant("192.0.2.2").namespace
    assert shaking.user not in {"192.0.2.1", page_tenant("/docs", "192.0.2.1").user}
    assert len({flood.address, kubelet.address, shaking.address, page_tenant("/docs", "192.0.2.1").address}) == 4


def test_handshakes_of_all_addresses_count_as_one_address():
    assert handshake_tenant("192.0.2.1").address == handshake_tenant("192.0.2.2").address
