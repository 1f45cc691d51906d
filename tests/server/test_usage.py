"""How much processor time each tenant used recently."""

from __future__ import annotations

import time

import pytest

from webhook.server.usage import HALF_LIFE_S, LIGHT_SHARE, MAX_ENTRIES, Tenant, Usage

ANN, BOB = Tenant("team-a", "ann"), Tenant("team-b", "bob")


def used(*entries: tuple[Tenant, float], at: float = 1e6) -> Usage:
    usage = Usage()
    for tenant, seconds in entries:
        usage.add(tenant, seconds, at)
    return usage


@pytest.mark.parametrize("share", [0.9 * LIGHT_SHARE, 1.1 * LIGHT_SHARE])
def test_steady_use_of_less_than_a_share_is_light(share: float):
    usage, now = Usage(), 0.0
    for _ in range(5000):
        now += 0.01
        usage.add(ANN, 0.01 * share, now)
    assert usage.is_light(ANN, now) == (share < LIGHT_SHARE)


def test_usage_fades_with_time():
    usage = used((ANN, 1.0))
    assert not usage.is_light(ANN, 1e6)
    assert usage.is_light(ANN, 1e6 + 2 * HALF_LIFE_S)
    assert used((ANN, 0.0)).is_light(ANN, 1e6)


def test_a_busy_address_waits_for_others_under_any_claimed_namespace_and_user():
    usage = Usage()
    for number in range(50):
        usage.add(Tenant(f"ns-{number}", f"user-{number}", "192.0.2.1"), 0.1, 1e6)
    named = Tenant("new", "new", "192.0.2.1")
    assert usage.is_light(named, 1e6)
    assert usage.rank(ANN._replace(address="192.0.2.2"), 1e6) < usage.rank(named, 1e6)
    assert usage.user_rank(ANN._replace(address="192.0.2.2"), 1e6) < usage.user_rank(named, 1e6)
    usage.add(ANN._replace(address="192.0.2.2"), 2.5, 1e6)
    assert usage.rank(ANN._replace(address="192.0.2.2"), 1e6) < usage.rank(named, 1e6)


def test_a_namespace_and_a_user_are_heavy_everywhere():
    usage = used((ANN, 2.0))
    for tenant in (Tenant("team-a", "bob"), Tenant("team-b", "ann")):
        assert not usage.is_light(tenant, 1e6)
    assert usage.is_light(BOB, 1e6)
    assert used((Tenant("team-a", ""), 2.0)).is_light(Tenant("team-b", ""), 1e6)


def test_the_tenant_with_less_use_ranks_lower_at_any_time():
    usage = used((ANN, 2.0), (BOB, 4.0))
    for now in (1e6, 1e6 + HALF_LIFE_S):
        assert usage.rank(ANN, now) < usage.rank(BOB, now)
    usage.add(ANN, 2.0, 1e6 + HALF_LIFE_S)
    assert usage.rank(ANN, 1e6) > usage.rank(BOB, 1e6)


def test_in_one_namespace_the_user_decides():
    quiet = Tenant("team-a", "bob")
    usage = used((ANN, 2.0), (quiet, 0.1))
    assert usage.rank(quiet, 1e6) < usage.rank(ANN, 1e6)


def test_all_light_tenants_are_equal():
    usage = used((ANN, 0.1), (BOB, 0.3))
    assert usage.rank(ANN, 1e6) == usage.rank(BOB, 1e6) == usage.rank(Tenant("new", "new"), 1e6)


def test_names_are_bounded():
    usage = used((ANN, 2.0))
    for number in range(MAX_ENTRIES):
        usage.add(Tenant(f"ns-{number}", f"user-{number}"), 2.0, 1e6)
    assert usage.is_light(ANN, 1e6)
    assert len(usage._namespaces) == len(usage._users) == MAX_ENTRIES


def test_nothing_overflows_after_a_year():
    usage = used((ANN, 2.0), at=0.0)
    usage.add(ANN, 2.0, 3e7)
    assert not usage.is_light(ANN, 3e7)
    assert time.monotonic() < 3e9
