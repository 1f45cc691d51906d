"""Finds cycles in a graph of names. Knows no object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webhook.typed.view import Typed


def find_names_waiting_in_cycles(targets: Mapping[str, Sequence[str]], owner: Typed) -> list[str]:
    """Return the names that wait for themselves, directly or indirectly, and the names that wait for these, in order.

    Args:
        targets: what each name waits for, all of them names of the mapping; a repetition counts once.
        owner: the object with this field; its reader is charged for the walk.
    """
    deadline = owner.reading.deadline
    waiting = {name: len(set(wanted)) for name, wanted in targets.items()}
    followers: dict[str, list[str]] = {}
    for name, wanted in targets.items():
        for target in deadline.charge_for_items(set(wanted)):
            followers.setdefault(target, []).append(name)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        del waiting[name]
        for follower in deadline.charge_for_items(followers.get(name, [])):
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return list(waiting)
