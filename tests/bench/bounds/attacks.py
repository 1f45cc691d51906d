"""The attacks, each a row of the report: the bodies that four attackers send, and the allowed answers.

A body is made just before its row runs, because it may have 20 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.bench.bounds import bodies, compiled, near_bounds, own_policies, slow_expressions
from tests.bench.bounds.pods import DEVICE_LISTS, POD_LISTS, containers_by_claims
from tests.bench.bounds.reviews import Maker, count_for, review
from tests.bench.bounds.workloads import WORKLOAD_LISTS, full_shards, options_of_read, shards

MB = bodies.MB
SMALL = 10


@dataclass(frozen=True)
class Attack:
    """One attack, which is a row of the report.

    Attributes:
        make: returns the body, with a placeholder for the uid.
        may_allow: False if every answer that allows is wrong.
        policy: the name of the slow policy that the attack is about, "" for none.
        is_ignored: whether the policy has failurePolicy Ignore, so an error must not deny.
        is_review: False if the answer is a refusal: 4xx, or any answer that does not allow if time ran out first.
        may_refuse: whether the server may refuse some of the bodies, if bodies differ.
        vary: returns the body for a number, if each request has a different body.
        small: a similar body with a quick answer, to check that the attack causes the delay.
    """

    name: str
    make: Callable[[], bytes]
    may_allow: bool = True
    policy: str = ""
    is_ignored: bool = False
    is_review: bool = True
    may_refuse: bool = False
    vary: Callable[[int], bytes] | None = None
    small: Callable[[], bytes] | None = None
    paths: tuple[str, ...] = ("/validate", "/mutate")


def _sized(name: str, maker: Maker, size: int) -> Attack:
    return Attack(f"{name}, {size / MB:g} MB", lambda: review(maker(count_for(maker, size))))


def _issue() -> Iterator[Attack]:
    """Yield the attacks that were reported first."""
    for count in (9_000, 20_000):
        yield Attack(f"{count:,} claims", lambda count=count: review(POD_LISTS["claims"](count)))
    yield Attack("1,000 shards x 100 containers, 174 KB", lambda: review(shards(1_000, 100)))
    yield Attack("50 containers x 1,000 claims", lambda: review(containers_by_claims(50, 1_000)))
    yield Attack("1,000 containers x 400 claims", lambda: review(containers_by_claims(1_000, 400)))
    yield Attack("190 levels, 3 MB", lambda: bodies.nested(3 * MB))
    yield Attack("190 levels, 19 MB", lambda: bodies.nested(19 * MB))
    yield Attack("190 levels of maps, 3 MB", lambda: bodies.nested_maps(3 * MB))


def _lists() -> Iterator[Attack]:
    """Yield an attack of 3 MB for every list. Lists of Pods that few policies read are only measured by growth.py."""
    for name, maker in {**POD_LISTS, **DEVICE_LISTS, **WORKLOAD_LISTS}.items():
        yield _sized(name, maker, 3 * MB)
    yield Attack("shards of 100 containers, 18 MB", lambda: review(full_shards(2_000)))


def _texts() -> Iterator[Attack]:
    for name, piece, script in (
        ("shell words", "a 'b' \"c\" $(d) `e` \\f; ", True),
        ("a shell's quotes", "'\"'\"", True),
        ("torchrun in a shell", "torchrun --nproc_per_node=8 --nnodes=2 --rdzv_id=1 train.py && ", True),
        ("mpirun in a shell", "mpirun -np 8 -x A=b -H a:1,b:2 python train.py | ", True),
        ("one long argument", "--nproc_per_node=", False),
        ("placeholders", "$(A){{ .b }}${C}", True),
    ):
        yield Attack(
            f"{name}, 3 MB", lambda piece=piece, script=script: review(bodies.pod_text(3 * MB, piece, script=script))
        )
    for length in (12_000, 3 * MB):
        yield Attack(f"options of read, {length:,} bytes", lambda length=length: review(options_of_read(length)))
    yield Attack("names of 600 KB", lambda: review(bodies.long_names(3 * MB)))
    yield Attack("escapes, 3 MB", lambda: bodies.quotes(3 * MB))
    yield Attack("wrong types, 3 MB", lambda: review(bodies.wrong_types(15_000)))
    yield Attack("update of 3 MB", lambda: bodies.twice(3 * MB // 2))


def _not_reviews() -> Iterator[Attack]:
    for name, make in bodies.NOT_REVIEWS.items():
        yield Attack(name, make, is_review=False)


def _own() -> Iterator[Attack]:
    for own in slow_expressions.OWN:
        yield Attack(
            f"own: {own.name}",
            lambda own=own: review(own.pod(count_for(own.pod, MB))),
            may_allow=own.ignored,
            policy=own.label,
            is_ignored=own.ignored,
            small=lambda own=own: review(own.pod(SMALL)),
            paths=("/validate",),
        )
    for name in own_policies.MUTATING:
        maker = lambda n, name=name: own_policies.mutated(name, n)  # noqa: E731
        yield Attack(f"own: {name}", lambda maker=maker: review(maker(count_for(maker, MB))), paths=("/mutate",))


def _compiled() -> Iterator[Attack]:
    """Yield attacks with texts that the server compiles. The texts of each request are different."""
    for name, vary in compiled.VARIED.items():
        yield Attack(name, partial(vary, 1), vary=vary, paths=("/validate",))


def _near() -> Iterator[Attack]:
    """Yield attacks with bodies that are just small enough for the event loop. The body of each request is
    different.
    """
    for name, vary in near_bounds.VARIED.items():
        may_refuse = name in near_bounds.MAY_BE_REFUSED
        yield Attack(name, partial(vary, 1), vary=vary, may_refuse=may_refuse)


GROUPS = {
    "issue": _issue,
    "lists": _lists,
    "texts": _texts,
    "bytes": _not_reviews,
    "own": _own,
    "compiled": _compiled,
    "near": _near,
}


def attacks() -> list[Attack]:
    """Return all attacks, in the order of the report."""
    return [one for group in GROUPS.values() for one in group()]
