"""What one load of the policies read and compiled, for the next load of the same places with the same options.

Compiling the shipped policies takes the processor for half a second, and a server that reloads them answers reviews in
the same process. One changed file should cost what one file costs. Knows texts and policies, not what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from webhook import yamlfile
from webhook.attributes import JSON
from webhook.manifests.field_errors import FieldError
from webhook.policy.compiled import Binding, Policy
from webhook.same import Same

Compiled: TypeAlias = tuple[Policy | Binding, Sequence[FieldError]]
"""A policy without its bindings, or a binding; and what is wrong with it."""


class Kept:
    """The documents of each text, and what each manifest was compiled to, of the latest load; for one thread."""

    def __init__(self) -> None:
        self._documents: dict[tuple[Path, str], tuple[yamlfile.Document, ...]] = {}
        self._compiled: dict[Same, Compiled] = {}
        self._last_documents, self._last_compiled = self._documents, self._compiled

    def begin(self) -> None:
        """Begin a load: what the latest one did not use is forgotten."""
        self._last_documents, self._documents = self._documents, {}
        self._last_compiled, self._compiled = self._compiled, {}

    def read(self, file: Path) -> tuple[yamlfile.Document, ...]:
        """The documents of a file; the same ones as before where its text is the same.

        Raises:
            InputError: the file cannot be read, is not UTF-8, or not YAML or JSON.
        """
        key = file, yamlfile.text(file)
        known = self._last_documents.get(key)
        self._documents[key] = yamlfile.load(key[1], yamlfile.shown(file)) if known is None else known
        return self._documents[key]

    def compiled(self, manifest: JSON, make: Callable[[], Compiled]) -> Compiled:
        """What a manifest is compiled to; made where this very manifest was not compiled before."""
        key = Same(manifest)
        known = self._last_compiled.get(key)
        self._compiled[key] = make() if known is None else known
        return self._compiled[key]
