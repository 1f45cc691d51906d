"""Fills a store with its first certificates, or renews them by the plan of rotate.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from certs import CertificateError
from certs.issue import CA_DAYS, SERVING_DAYS, Pair, authority, belongs, is_signed_by, read, serving
from certs.rotate import Plan, State, plan
from certs.store import CA, CA_KEY, SERVING, SERVING_KEY, Store

AUTHORITY_NAME: Final = "claimgate CA"
_END: Final = b"-----END CERTIFICATE-----\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """How long new certificates are valid."""

    serving: int = SERVING_DAYS
    authority: int = CA_DAYS


def issue(store: Store, names: Sequence[str], *, now: datetime, days: Days, replace: bool = False) -> None:
    """Write a new authority and a new serving pair into a store.

    Raises:
        CertificateError: the store has certificates, or a name is invalid.
    """
    if not replace and (existing := sorted(store.read())):
        raise CertificateError(f"{', '.join(existing)} already exist; use rotate, or --replace to start again")
    ca = authority(AUTHORITY_NAME, now=now, days=days.authority)
    pair = serving(ca, names, now=now, days=days.serving)
    store.write({CA: ca.certificate, CA_KEY: ca.key, SERVING: pair.certificate, SERVING_KEY: pair.key})


@contextmanager
def named(file: str) -> Iterator[None]:
    """Add the name of the file to an error.

    Raises:
        CertificateError: the error with the name of the file.
    """
    try:
        yield
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}") from None


def state(files: Mapping[str, bytes]) -> State:
    """Return the state of a store; authorities without their key do not count, because they cannot sign.

    Raises:
        CertificateError: one of them cannot be read.
    """
    bundle = split(files.get(CA, b""))
    with named(CA):
        authorities = tuple(read(one)[0] for one in bundle) if files.get(CA_KEY) else ()
    pair = Pair(files.get(SERVING, b""), files.get(SERVING_KEY, b""))
    if not pair.certificate or not pair.key:
        return State(authorities=authorities)
    with named(SERVING):
        read(pair.certificate)
    with named(SERVING_KEY):
        belong = belongs(pair)
    if not belong:
        return State(authorities=authorities)
    signers = [is_signed_by(pair.certificate, one) for one in bundle]
    return State(
        authorities=authorities,
        serving=read(pair.certificate)[0],
        signed_by_newest=signers[:1] == [True],
        signed_by_any=any(signers),
    )


def rotate(
    store: Store,
    names: Sequence[str],
    *,
    now: datetime,
    days: Days,
    pretend: bool = False,
    trusted: Callable[[], bytes] = bytes,
) -> tuple[Plan, bytes]:
    """Renew the certificates that are due.

    Args:
        store: has the certificates.
        names: of the serving certificate; () keeps its names.
        now: the time.
        days: how long new certificates are valid.
        pretend: only make the plan.
        trusted: returns the bundle that clients trust now; called if the store has none. These authorities stay for a
            while: replicas may still show a certificate that one of them signed.

    Returns:
        The plan, and the bundle after it.

    Raises:
        CertificateError: names are missing, or something cannot be read or written.
    """
    files = store.read()
    current = state(files)
    wanted = tuple(names) or (current.serving.names if current.serving else ())
    if not wanted:
        raise CertificateError("no serving certificate to take the names from; give them with --name or --service")
    todo = plan(current, wanted, now=now)
    known = files if files.get(CA) else {**files, CA: _readable_authorities(trusted(), now)}
    changed = _carry_out(todo, known, wanted, now, days)
    if changed and not pretend:
        store.write(changed)
    return todo, (files if pretend else {**files, **changed}).get(CA, b"")


def _readable_authorities(bundle: bytes, now: datetime) -> bytes:
    # those that are valid now
    kept = []
    for one in split(bundle):
        with suppress(CertificateError):
            facts = read(one)[0]
            kept += [one] if facts.is_authority and facts.not_after > now else []
    return b"".join(kept)


def split(bundle: bytes) -> list[bytes]:
    """Return the certificates of a bundle."""
    return [part + _END for part in bundle.replace(b"\r\n", b"\n").split(_END)[:-1]] if bundle else []


def _carry_out(
    todo: Plan, files: Mapping[str, bytes], names: Sequence[str], now: datetime, days: Days
) -> dict[str, bytes]:
    changed: dict[str, bytes] = {}
    kept = [one for one in split(files.get(CA, b"")) if read(one)[0].fingerprint not in todo.drop]
    if todo.new_authority:
        ca = authority(AUTHORITY_NAME, now=now, days=days.authority)
        kept.insert(0, ca.certificate)
        changed[CA_KEY] = ca.key
    if todo.new_authority or todo.drop:
        changed[CA] = b"".join(kept)
    if todo.new_serving:
        signer = Pair(kept[0], changed.get(CA_KEY) or files[CA_KEY])
        pair = serving(signer, names, now=now, days=days.serving)
        changed.update({SERVING: pair.certificate, SERVING_KEY: pair.key})
    return changed
