"""Makes field errors with the texts of API servers, such as `spec.paramKind.kind: Required value`.

Source: k8s.io/apimachinery v0.36 pkg/util/validation/field/errors.go (`ErrorBody`), pkg/util/errors/errors.go
(`aggregate.Error`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cel.library.go_text import quote_as_go


class FieldError(Struct, frozen=True):
    """The error of API servers about one field. `note` is a fix by claimgate."""

    path: FieldPath
    body: str
    note: str = ""

    def __str__(self) -> str:
        return f"{path_as_text(self.path)}: {self.body}"


def _kind_with_detail(kind: str, detail: str) -> str:
    return f"{kind}: {detail}" if detail else kind


def required_error(path: FieldPath, detail: str = "") -> FieldError:
    """Return the error of a required field that is absent."""
    return FieldError(path, _kind_with_detail("Required value", detail))


def invalid_error(path: FieldPath, value: object, detail: str) -> FieldError:
    """Return the error of a field with an invalid value."""
    return FieldError(path, _kind_with_detail(f"Invalid value: {value_as_go_text(value)}", detail))


def unsupported_error(path: FieldPath, value: object, supported: Sequence[str]) -> FieldError:
    """Return the error of a field with a value outside a closed set."""
    return FieldError(
        path,
        f"Unsupported value: {value_as_go_text(value)}: supported values: "
        f"{', '.join(map(value_as_go_text, supported))}",
    )


def duplicate_error(path: FieldPath, value: object) -> FieldError:
    """Return the error of a value that must be unique."""
    return FieldError(path, f"Duplicate value: {value_as_go_text(value)}")


def forbidden_error(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a field that must be absent."""
    return FieldError(path, _kind_with_detail("Forbidden", detail))


def internal_error(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a field that the API server could not process."""
    return FieldError(path, f"Internal error: {detail}")


def too_many_error(path: FieldPath, count: int, limit: int) -> FieldError:
    """Return the error of a list that is too long."""
    return FieldError(path, f"Too many: {count}: must have at most {limit} items")


def value_as_go_text(value: object) -> str:
    """Return a value as API servers write it: text quoted as in Go, other values as JSON."""
    if isinstance(value, str):
        return quote_as_go(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def join_errors(errors: Iterable[object]) -> str:
    """Join errors to one text. Several errors become `[a, b]`. Equal errors are written once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
