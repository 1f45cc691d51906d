"""The catalogue of device names in devices.yaml.

A name that no row of the catalogue matches is not a known device. For such a name, the nearest known name is suggested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.text.caches import cache_for_short_texts
from webhook.text.similar_names import nearest_resource
from webhook.yamltext import yamlfile

FILE = Path(__file__).with_name("devices.yaml")
COUNTED = frozenset(("device", "shared", "slice"))
"""Kinds of rows with amounts that count devices."""


class DeviceCatalogueRow(Struct, frozen=True, kw_only=True):
    """What a name means. The top of devices.yaml explains `kind`, which is "" for a name that no row matches."""

    name: str = ""
    vendor: str = ""
    kind: str = ""
    gpu: bool = True
    form: str = ""

    def fits(self, name: str) -> bool:
        """Return whether a name matches the pattern of the row, and the form of the row if `form` is set."""
        if "*" not in self.name:
            return self.name == name
        return fnmatchcase(name, self.name) and (not self.form or re.fullmatch(self.form, name) is not None)


UNKNOWN = DeviceCatalogueRow(gpu=False)
REMOVED_RESOURCE: Final = "alpha.kubernetes.io/nvidia-gpu"
"""The GPUs that the kubelet offered without a device plugin (k8s.io/kubernetes v1.11, which removed Accelerators)."""
NAME_WORK: Final = 10
"""The charge for a name. To compare a new name with the patterns of all known names takes a tenth of a millisecond."""
_LONGEST_IMAGE: Final = 1024
"""The most characters of an image's name. A repository has up to 255 characters, a tag 128 and a digest about 140.
Images with longer names cannot be pulled.
"""
_NVIDIA: Final = "nvcr.io/nvidia/"
_SLICE = re.compile(r"nvidia(?:[.]com)?/mig-([1-9])g[._-]?([1-9][0-9]*)g?b?((?:[.]shared)?)")
"""Matches the spellings of MIG slices that users write."""


class DeviceCatalogue(Struct, frozen=True, kw_only=True):
    """All rows of devices.yaml. `whole_names` has the full resource names without `*`, by the name in lower case."""

    resources: tuple[DeviceCatalogueRow, ...]
    whole_names: Mapping[str, str]
    classes: tuple[DeviceCatalogueRow, ...]
    images: re.Pattern[str]
    image_names: re.Pattern[str]
    tools: re.Pattern[str]
    of_nvidia: tuple[str, ...]
    without_cuda: re.Pattern[str]
    runtime_classes: frozenset[str]


@cache
def read_device_catalogue() -> DeviceCatalogue:
    """Return the shipped catalogue; it is read on first use."""
    (document,) = yamlfile.read(FILE)
    value = document.value
    resources = tuple(map(_device_of_row, value["resources"]))
    return DeviceCatalogue(
        resources=resources,
        whole_names={row.name.lower(): row.name for row in resources if "*" not in row.name and "/" in row.name},
        classes=tuple(map(_device_of_row, value["deviceClasses"])),
        images=_pattern_for_any(value["images"]),
        image_names=_pattern_for_any(value["imageNames"]),
        tools=_pattern_for_any(value["tools"]),
        of_nvidia=tuple(value["ofNvidia"]),
        without_cuda=_pattern_for_any(value["withoutCuda"]),
        runtime_classes=frozenset(value["runtimeClasses"]),
    )


def _device_of_row(row: JSON) -> DeviceCatalogueRow:
    given = {"gpu": row.get("gpu", True), "form": row.get("form", "")}
    return DeviceCatalogueRow(name=row["name"], vendor=row["vendor"], kind=row["kind"], **given)


@cache_for_short_texts(1 << 20)
def device_of_resource_name(name: str) -> DeviceCatalogueRow:
    """Return the device that a resource counts: `nvidia.com/mig-1g.5gb` counts slices of NVIDIA GPUs.

    Kubernetes distinguishes capital letters, so a known name with other capital letters is not a known device.
    """
    return (
        UNKNOWN if _known_resource_in_other_case(name) else _first_matching_row(name, read_device_catalogue().resources)
    )


def _known_resource_in_other_case(name: str) -> str:
    """Return the known resource that differs only in capital letters: `gpu.intel.com/i915` for `…/I915`; or ""."""
    meant = read_device_catalogue().whole_names.get(name.lower(), name)
    return "" if meant == name else meant


@cache_for_short_texts(1 << 20)
def device_of_class_name(name: str) -> DeviceCatalogueRow:
    """Return the devices that a DeviceClass probably has, by its name."""
    return _first_matching_row(name, read_device_catalogue().classes)


def is_class_installed_by_driver(name: str) -> bool:
    """Return whether a driver installs a DeviceClass with this name. A cluster with the driver then has the class."""
    return device_of_class_name(name).name == name


@cache_for_short_texts(1 << 20)
def nearest_known_resource(name: str) -> str:
    """Return the known resource that an unknown name probably means: `nvidia.com/gpu` for `nvidia.com/gpus`; "" if no
    known name is near.

    The end of the domain may be missing (`nvidia/gpu`), or the dot of a slice (`mig-1g5gb`).
    """
    if name == REMOVED_RESOURCE:
        return "nvidia.com/gpu"
    slice_ = _SLICE.fullmatch(name.lower())
    if slice_:
        return f"nvidia.com/mig-{slice_[1]}g.{slice_[2]}gb{slice_[3]}"
    return _name_in_case_of_family(name) or nearest_resource(
        name, (row.name for row in read_device_catalogue().resources if "*" not in row.name and "/" in row.name)
    )


def _name_in_case_of_family(name: str) -> str:
    """Return a name with the capital letters of the matching pattern: `huawei.com/Ascend910` for
    `huawei.com/ASCEND910`; "" if no pattern matches.
    """
    for row in read_device_catalogue().resources:
        family, star, rest = row.name.partition("*")
        is_of_family = star and not rest and not family.endswith("/") and name.lower().startswith(family.lower())
        if is_of_family and not name.startswith(family):
            return f"{family}{name[len(family) :]}"
    return ""


@cache_for_short_texts(1 << 20)
def is_gpu_image(image: str) -> bool:
    """Return whether the name of an image shows that the program computes on GPUs. Plugins and tools do not compute."""
    known = read_device_catalogue()
    name = image.rpartition("/")[2]
    if len(image) > _LONGEST_IMAGE or known.without_cuda.match(image):
        return False
    if not known.images.match(image) and not known.image_names.match(name):
        return False
    _, is_of_nvidia, rest = image.partition(_NVIDIA)
    if is_of_nvidia and not any(each in rest for each in known.of_nvidia):
        return False
    return not is_tool_image(image)


def is_tool_image(image: str) -> bool:
    """Return whether the name of an image shows that the program only monitors, offers or configures GPUs."""
    return len(image) <= _LONGEST_IMAGE and bool(read_device_catalogue().tools.match(image.rpartition("/")[2]))


def _pattern_for_any(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return a regular expression for names that match at least one of the shell patterns."""
    return re.compile("|".join(map(translate, patterns)))


def _first_matching_row(name: str, rows: Sequence[DeviceCatalogueRow]) -> DeviceCatalogueRow:
    for row in rows:
        if row.fits(name):
            return row
    return UNKNOWN
