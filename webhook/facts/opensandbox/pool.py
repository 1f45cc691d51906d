"""A Pool of OpenSandbox: what its pods are made from, and sizes that can be reached.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/pool_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.opensandbox.sandbox import Sandbox, problem
from webhook.problem import Problem


def validate_pool_template(pool: Sandbox) -> Iterator[Problem]:
    """A Pool that may have pods has a template."""
    capacity = pool.spec.get("capacitySpec")
    if not pool.has("template") and capacity is not None and capacity.get("poolMax", 0) != 0:
        message = "must be set because the Pool creates its pods from this template"
        yield problem("pool-template", ("spec", "template"), message, "set a pod template")


def advise_capacity(pool: Sandbox) -> Iterator[Problem]:
    """Sizes that exclude each other."""
    capacity = pool.spec.get("capacitySpec", {})
    sizes = [capacity.get(name) for name in ("bufferMin", "bufferMax", "poolMin", "poolMax")]
    if None in sizes:
        return
    least, most, smallest, largest = (size or 0 for size in sizes)
    if least > most:
        message = (
            f"must not be above bufferMax, which is {most}, because the controller would then keep half of the sum of "
            "both"
        )
        fix = "lower bufferMin, or raise bufferMax"
        yield problem("buffer-range", ("spec", "capacitySpec", "bufferMin"), message, fix, least)
    if smallest > largest:
        message = f"must not be above poolMax, which is {largest}, because the Pool never grows beyond poolMax"
        fix = "lower poolMin, or raise poolMax"
        yield problem("pool-range", ("spec", "capacitySpec", "poolMin"), message, fix, smallest)
    if least > largest:
        message = f"must not be above poolMax, which is {largest}, because the Pool never grows beyond poolMax"
        fix = "lower bufferMin, or raise poolMax"
        yield problem("buffer-above-pool", ("spec", "capacitySpec", "bufferMin"), message, fix, least)
