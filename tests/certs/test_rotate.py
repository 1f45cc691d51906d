"""Rotation: a table of plans, and the life of a store, in which clients always trust the certificate."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import CertificateError
from certs.issue import Facts, is_signed_by, read
from certs.keep import Days, issue, rotate, split, state
from certs.rotate import Plan, State, plan
from certs.store import CA, CA_KEY, SERVING, SERVING_KEY, Folder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = Days(serving=90, authority=900)


def life(age: int, left: int, *names: str, subject: str = "CN=x") -> Facts:
    return Facts(
        subject=subject,
        issuer="CN=ca",
        names=names,
        not_before=NOW - timedelta(days=age),
        not_after=NOW + timedelta(days=left),
        is_authority=False,
        fingerprint=subject,
    )


def stored(*authorities: Facts, serving: Facts | None = None, newest: bool = True, signed: bool = True) -> State:
    return State(authorities=authorities, serving=serving, signed_by_newest=newest, signed_by_any=signed)


FRESH_CA, OLD_CA = life(10, 890), life(700, 200, subject="CN=old")
NEW_CA, DEAD_CA = life(0, 900), life(1000, -1, subject="CN=dead")
GOOD, DUE, GONE = life(10, 80, "a"), life(70, 20, "a"), life(100, -1, "a")

PLANS: dict[str, tuple[State, Plan]] = {
    "nothing is due": (stored(FRESH_CA, serving=GOOD), Plan()),
    "the store is empty": (
        State(),
        Plan(
            new_authority=True,
            new_serving=True,
            reasons=("there is no authority", "there is no serving certificate with its key"),
        ),
    ),
    "the serving certificate is in its last third": (
        stored(FRESH_CA, serving=DUE),
        Plan(new_serving=True, reasons=("the serving certificate expires on 2026-01-21",)),
    ),
    "the serving certificate expired": (
        stored(FRESH_CA, serving=GONE),
        Plan(new_serving=True, reasons=("the serving certificate expired on 2025-12-31",)),
    ),
    "the serving certificate lacks a name": (
        stored(FRESH_CA, serving=life(10, 80, "b")),
        Plan(new_serving=True, reasons=("the serving certificate lacks a",)),
    ),
    "the serving certificate is not signed by the authority": (
        stored(FRESH_CA, serving=GOOD, newest=False, signed=False),
        Plan(new_serving=True, reasons=("the serving certificate is not signed by any of the authorities",)),
    ),
    "the authority is due: a new authority is added, and does not sign yet": (
        stored(OLD_CA, serving=GOOD),
        Plan(new_authority=True, reasons=("the authority expires on 2026-07-20",)),
    ),
    "a new authority waits before it signs": (stored(NEW_CA, OLD_CA, serving=GOOD, newest=False), Plan()),
    "a new authority waits also when the certificate is due": (
        stored(NEW_CA, OLD_CA, serving=DUE, newest=False),
        Plan(),
    ),
    "a new authority signs after the wait": (
        stored(FRESH_CA, OLD_CA, serving=GOOD, newest=False),
        Plan(new_serving=True, reasons=("the serving certificate was signed by an earlier authority",)),
    ),
    "the former authority leaves the bundle when all replicas show the new certificate": (
        stored(FRESH_CA, OLD_CA, serving=GOOD),
        Plan(drop=("CN=old",), reasons=("authority CN=old of 2024-02-01 signs no certificate that is served",)),
    ),
    "the former authority stays in the bundle until then": (stored(FRESH_CA, OLD_CA, serving=life(0, 90, "a")), Plan()),
    "an expired authority leaves the bundle": (
        stored(FRESH_CA, DEAD_CA, serving=GOOD),
        Plan(drop=("CN=dead",), reasons=("authority CN=dead expired on 2025-12-31",)),
    ),
}


@pytest.mark.parametrize(("given", "expected"), PLANS.values(), ids=PLANS.keys())
def test_a_rotation_is_planned_from_the_state(given: State, expected: Plan) -> None:
    assert plan(given, ["a"], now=NOW) == expected


def test_over_years_no_certificate_is_served_that_the_previous_bundle_does_not_trust(tmp_path: Path) -> None:
    store = Folder(tmp_path / "certs")
    issue(store, ["a.b.svc"], now=NOW, days=DAYS)
    injected = store.read()[CA]
    authorities, servings = {injected}, {store.read()[SERVING]}
    for day in range(1, 2000):
        now = NOW + timedelta(days=day)
        _, bundle = rotate(store, [], now=now, days=DAYS)
        files = store.read()
        serving = read(files[SERVING])[0]
        assert any(is_signed_by(files[SERVING], one) for one in split(injected)), f"day {day}: not trusted yet"
        assert serving.not_after > now
        injected = bundle
        authorities.add(split(bundle)[0])
        servings.add(files[SERVING])
        assert len(split(bundle)) <= 2
    assert len(authorities) == 4
    assert len(servings) > 30


def test_files_are_written_completely_and_keys_are_private(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    issue(store, ["a"], now=NOW, days=DAYS)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {CA: 0o644, CA_KEY: 0o600, SERVING: 0o644, SERVING_KEY: 0o600}


def test_issuing_twice_needs_a_flag(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    issue(store, ["a"], now=NOW, days=DAYS)
    before = store.read()
    with pytest.raises(CertificateError, match="already exist; use rotate"):
        issue(store, ["a"], now=NOW, days=DAYS)
    assert store.read() == before
    issue(store, ["a"], now=NOW, days=DAYS, replace=True)
    assert store.read()[CA] != before[CA]


def test_a_dry_run_rotation_changes_nothing(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    issue(store, ["a"], now=NOW, days=DAYS)
    before = store.read()
    todo, bundle = rotate(store, [], now=NOW + timedelta(days=80), days=DAYS, pretend=True)
    assert (todo.new_serving, bundle, store.read()) == (True, before[CA], before)


def test_rotation_repairs_a_store(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    with pytest.raises(CertificateError, match="give them with --name"):
        rotate(store, [], now=NOW, days=DAYS)
    rotate(store, ["a"], now=NOW, days=DAYS)
    (tmp_path / SERVING_KEY).write_bytes(store.read()[CA_KEY])
    assert state(store.read()).serving is None
    rotate(store, ["a"], now=NOW, days=DAYS)
    assert state(store.read()).signed_by_newest
    (tmp_path / CA_KEY).unlink()
    assert state(store.read()).authorities == ()
    rotate(store, ["a"], now=NOW, days=DAYS)
    repaired = state(store.read())
    assert (len(repaired.authorities), repaired.signed_by_any, repaired.signed_by_newest) == (2, True, False)
    rotate(store, ["a"], now=NOW + timedelta(hours=2), days=DAYS)
    assert state(store.read()).signed_by_newest


def test_certificates_that_are_deleted_are_replaced_by_trusted_ones(tmp_path: Path) -> None:
    """Replicas show the old certificate until they have read the new one, so clients must trust both."""
    store = Folder(tmp_path)
    issue(store, ["a"], now=NOW, days=DAYS)
    before = store.read()
    for path in tmp_path.iterdir():
        path.unlink()
    broken = b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
    _, bundle = rotate(store, ["a"], now=NOW, days=DAYS, trusted=lambda: broken + before[CA] + before[SERVING])
    shown = before[SERVING], store.read()[SERVING]
    assert [[is_signed_by(each, one) for one in split(bundle)] for each in shown] == [[False, True], [True, False]]
    _, bundle = rotate(store, ["a"], now=NOW + timedelta(hours=2), days=DAYS)
    assert [is_signed_by(shown[1], one) for one in split(bundle)] == [True]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / CA).write_text("x")
    (tmp_path / CA).chmod(0)
    with pytest.raises(CertificateError, match="permission denied"):
        Folder(tmp_path).read()


def test_unwritable_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match="file"):
        Folder(tmp_path / "file" / "below").write({CA: b"x"})
