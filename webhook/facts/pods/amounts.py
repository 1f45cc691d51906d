"""Reads amounts of resources in a pod as texts and as quantities, and the names of the resources.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/v1/helper/helpers.go (IsExtendedResourceName, IsHugePageResourceName,
HugePageSizeFromResourceName). The API server rounds amounts up to thousandths (pkg/apis/core/v1/conversion.go
Convert_v1_ResourceList_To_core_ResourceList), and compares the rounded amounts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import qualified_name_errors
from webhook.apimachinery.quantity import Quantity
from webhook.text import wording
from webhook.text.caches import cache_for_short_texts

STANDARD: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""The resources that every node has."""
HUGE: Final = "hugepages-"
LARGEST: Final = 9 * 10**15
"""Amounts of at least this value are not compared, because their thousandths exceed the API server's 64 bits."""
_LONGEST_PREFIX: Final = 244
"""The longest domain in characters. A quota adds `requests.` in front, and a subdomain has at most 253 characters."""


class ResourceName(Struct, frozen=True):
    """The name of a resource. `page` is the page size of hugepages in bytes, or 0 for an invalid size; None for other
    resources.
    """

    text: str
    is_qualified: bool
    is_extended: bool
    page: int | None

    @property
    def may_be_overcommitted(self) -> bool:
        """Return whether a request may be less than the limit."""
        return not self.is_extended and not self.page


@cache_for_short_texts(1 << 20)
def parse_resource_name(text: str) -> ResourceName:
    """Return a resource's name with its properties: whether the name is qualified and extended, and the page size."""
    is_extended = "/" in text and "kubernetes.io/" not in text
    is_qualified = not qualified_name_errors(text)
    if is_extended and (text.startswith("requests.") or text.index("/") > _LONGEST_PREFIX):
        is_qualified = False
    return ResourceName(text, is_qualified, is_extended, _page_size(text) if text.startswith(HUGE) else None)


def _page_size(text: str) -> int:
    size = read_quantity(text.removeprefix(HUGE))
    return size.value() if size is not None and size.is_whole() and size.sign() > 0 else 0


def amount_as_string(value: JSON) -> str:
    """Return an amount as a text; null counts as 0."""
    if isinstance(value, str):  # nearly always true
        return value.strip()
    if value is None:
        return "0"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if isinstance(value, list | dict) else str(value).strip()


def amount_for_message(value: JSON) -> str:
    """Return an amount in the form that messages show."""
    if value is None:
        return "null, which counts as 0,"
    return f"`{wording.shown(value) if isinstance(value, list | dict) else amount_as_string(value)}`"


@cache_for_short_texts(1 << 20)
def read_quantity(text: str) -> Quantity | None:
    """Return the quantity in a text; None for an invalid text."""
    try:
        return quantity.parse_quantity(text)
    except ValueError:
        return None


def is_small_enough_to_compare(amount: Quantity) -> bool:
    """Return whether an amount is small enough for comparisons."""
    return amount.value() < LARGEST
