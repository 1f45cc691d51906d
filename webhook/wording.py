"""Numbers and lists in sentences: the one place that knows about plurals. Knows nothing of what is counted.

The plural of a Kubernetes kind as a resource (`pytorchjobs`) is another matter: workloads/plurals.py.
"""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 object`, `2 objects`, `3 policies`.

    Args:
        count: how many.
        noun: the singular.
        plural: the plural where it is more than the singular and an s.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def named(names: Sequence[str], noun: str, plural: str = "") -> str:
    """Names after their noun: `policy a`, `policies a, b`."""
    return f"{noun if len(names) == 1 else plural or f'{noun}s'} {', '.join(names)}"
