"""Uses private parts of google-re2: the compiled program, without the wrapper in Python. Creating the wrapper's Match
object takes ten times as long as the search. pyproject.toml bounds the version of google-re2.
"""

from __future__ import annotations

from typing import Any

from webhook.errors import DependencyChanged


def compiled_re2_program(pattern: bytes, options: Any) -> Any:
    """Return a compiled pattern with `ok()`, `error()` and `Match(anchor, text, start, end)`."""
    from re2 import _re2

    return _re2.RE2(pattern, options)


def unanchored_flag() -> Any:
    """Return the first argument of `Match` that lets a pattern match anywhere."""
    from re2 import _re2

    return _re2.RE2.Anchor.UNANCHORED


def check_installed_version() -> None:
    """Check the private parts of the installed google-re2.

    Raises:
        DependencyChanged: the private parts are missing, or a search gives another result.
    """
    try:
        from re2 import Options

        good, bad = compiled_re2_program(b"b+", Options()), compiled_re2_program(b"(", _quiet_options())
        is_searched = good.ok() and good.Match(unanchored_flag(), b"abbc", 0, 4)[0] == (1, 3)
        if is_searched and not bad.ok() and bad.error():
            return
    except (ImportError, AttributeError, TypeError):
        pass
    raise DependencyChanged("google-re2", "re2._re2.RE2")


def _quiet_options() -> Any:
    from re2 import Options

    options = Options()
    options.log_errors = False
    return options
