"""Writes values as YAML that kubectl reads back as the same values."""

from __future__ import annotations

from typing import Any

import yaml

from webhook import yamlscalar
from webhook.attributes import JSON
from webhook.terminal import is_graphic

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump(value: JSON) -> str:
    """Return the YAML of a value: keys in order, no aliases, and quotes around texts that kubectl would read as another
    type.

    One that holds characters which a terminal obeys, or nobody sees, has escapes for all that is not ASCII.
    """
    text = _dumped(value, is_ascii=False)
    return text if is_graphic(text.replace("\n", "")) else _dumped(value, is_ascii=True)


def _dumped(value: JSON, *, is_ascii: bool) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=not is_ascii, width=120))


class _Dumper(_DUMPER):  # type: ignore[misc]  # the base is C or Python, whichever is there
    def ignore_aliases(self, data: JSON) -> bool:  # noqa: ARG002
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text.rstrip("\n") else None
    try:
        is_text = yamlscalar.resolve(text) is text
    except ValueError:
        is_text = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style if is_text else '"')


_Dumper.add_representer(str, _represent_text)
