"""A Pool of OpenSandbox: what its pods are made from, and sizes that can be reached.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/pool_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.check import Group
from webhook.facts.opensandbox.types import Pool
from webhook.problem import Problem

problem = Group("sandbox").problem


def validate_pool_template(pool: Pool) -> Iterator[Problem]:
    """A Pool that may have pods has a template."""
    capacity = pool.spec.capacity_spec
    if not pool.spec.has("template") and capacity and capacity.pool_max != 0:
        message = "must be set because the Pool creates its pods from this template"
        yield problem("pool-template", pool.spec.path("template"), message, "set a pod template")


def advise_capacity(pool: Pool) -> Iterator[Problem]:
    """Sizes that exclude each other."""
    capacity = pool.spec.capacity_spec
    least, most = capacity.buffer_min, capacity.buffer_max
    smallest, largest = capacity.pool_min, capacity.pool_max
    if least is None or most is None or smallest is None or largest is None:
        return
    if least > most:
        message = (
            f"must not be above bufferMax, which is {most}, because the controller would then keep half of the sum of "
            "both"
        )
        yield problem("buffer-range", capacity.path("bufferMin"), message, "lower bufferMin, or raise bufferMax", least)
    message = f"must not be above poolMax, which is {largest}, because the Pool never grows beyond poolMax"
    if smallest > largest:
        yield problem("pool-range", capacity.path("poolMin"), message, "lower poolMin, or raise poolMax", smallest)
    if least > largest:
        fix = "lower bufferMin, or raise poolMax"
        yield problem("buffer-above-pool", capacity.path("bufferMin"), message, fix, least)
