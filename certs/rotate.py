"""Plans which certificates to renew now; keep.py carries out the plan.

API servers must trust a new authority before a server shows a certificate of it. So an authority is renewed in two
steps. First it is put before the old one in the bundle. After `SETTLE` it signs the serving certificate. The old
authority stays for another `SETTLE`, in which every replica reads the new certificate. A missing, expired or misnamed
serving certificate is replaced at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.issue import Facts

SETTLE: Final = timedelta(hours=1)
RENEW_AT: Final = 3
"""A certificate is renewed in the last third of its life: of 90 days, when 30 are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The stored certificates.

    Attributes:
        authorities: the newest first.
        serving: None if it is missing or its key does not fit.
        signed_by_newest: the first authority signed the serving certificate.
    """

    authorities: tuple[Facts, ...] = ()
    serving: Facts | None = None
    signed_by_newest: bool = False
    signed_by_any: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The action, and the reason. `drop` has the authorities to leave out, by fingerprint."""

    new_authority: bool = False
    new_serving: bool = False
    drop: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def plan(state: State, names: Sequence[str], *, now: datetime) -> Plan:
    """Return what to renew."""
    authority = _authority_reason(state, now)
    serving = _serving_reason(state, names, now, new_authority=bool(authority))
    dropped = {one.fingerprint: reason for one in state.authorities if (reason := _reason_to_drop(one, state, now))}
    reasons = [authority, serving, *dropped.values()]
    return Plan(
        new_authority=bool(authority),
        new_serving=bool(serving),
        drop=tuple(dropped),
        reasons=tuple(reason for reason in reasons if reason),
    )


def _authority_reason(state: State, now: datetime) -> str:
    if not state.authorities:
        return "there is no authority"
    newest = state.authorities[0]
    if is_due(newest, now):
        return f"the authority expires on {_day(newest.not_after)}"
    return ""


def _reason_to_drop(authority: Facts, state: State, now: datetime) -> str:
    if authority.not_after <= now:
        return f"authority {authority.subject} expired on {_day(authority.not_after)}"
    serving = state.serving
    if authority is state.authorities[0] or serving is None or not state.signed_by_newest:
        return ""
    if now - serving.not_before < SETTLE:
        return ""
    return f"authority {authority.subject} of {_day(authority.not_before)} signs no certificate that is served"


def _serving_reason(state: State, names: Sequence[str], now: datetime, *, new_authority: bool) -> str:
    serving = state.serving
    if serving is None:
        return "there is no serving certificate with its key"
    if serving.not_after <= now:
        return f"the serving certificate expired on {_day(serving.not_after)}"
    if not state.signed_by_any:
        return "the serving certificate is not signed by any of the authorities"
    if missing := sorted(set(names) - set(serving.names)):
        return f"the serving certificate lacks {', '.join(missing)}"
    if new_authority or _is_settling(state, now):
        return ""
    if is_due(serving, now):
        return f"the serving certificate expires on {_day(serving.not_after)}"
    return "" if state.signed_by_newest else "the serving certificate was signed by an earlier authority"


def _is_settling(state: State, now: datetime) -> bool:
    # API servers may not trust it yet
    return not state.signed_by_newest and now - state.authorities[0].not_before < SETTLE


def is_due(facts: Facts, now: datetime) -> bool:
    """Return whether a certificate is in the last third of its life."""
    return facts.not_after - now <= facts.lifetime / RENEW_AT


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
