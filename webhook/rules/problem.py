"""One mistake in an object, as data: the rule that it breaks, the place, the reason, and the fix.

Only the code that shows a problem makes a text of it; nothing parses this text.
"""

from __future__ import annotations

from msgspec import Struct


class MissingObject(Struct, frozen=True, kw_only=True):
    """An object that was needed and not found. `why` is `not found`, `not looked up` with a reason, or the unknown part
    of the object. `is_absent`: a file with the object would help; False for an object that was read.
    """

    kind: str
    name: str
    namespace: str = ""
    why: str = "not found"
    is_absent: bool = True

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind, self.name, self.why) if part)


class Problem(Struct, frozen=True, kw_only=True):
    """A problem that one check found: `path: found message: fix`.

    Args:
        code: the rule that is broken, `group/rule`, as a catalogue declares it.
        path: the rendered path of the field, from the root of the object that was checked; "" is the object itself.
        message: the mistake and its reason, a predicate of `found` or of the field: `must be a whole number because …`.
        fix: the fix, an imperative: `set 2`; "" if the message says it already.
        found: the value in the short form for messages: "`500m`", "a list"; "" if the field itself is the subject.
        also: paths of other places with the same mistake.
        missing: the objects that were needed and not found. Then the rule could not be checked, and no mistake is
            known.
        excess: the amount by which a number is too large or too small; 0 if the rule compares no numbers. An update
            that does not increase it does not make a stored object worse.
        is_for_administrators: only an administrator can apply the fix. Problems that users can fix are listed first.
        words: the wrong words of the field, such as a flag of its command. Reports of files mark the first of them.
    """

    code: str
    path: str
    message: str = ""
    fix: str = ""
    found: str = ""
    also: tuple[str, ...] = ()
    missing: tuple[MissingObject, ...] = ()
    excess: int = 0
    is_for_administrators: bool = False
    words: tuple[str, ...] = ()

    @property
    def found_and_message(self) -> str:
        """Return the value and what is wrong with it: "`500m` must be a whole number"."""
        return " ".join(filter(None, (self.found, self.message)))

    @property
    def code_found_and_message(self) -> tuple[str, str, str]:
        """Return the problem without its path, to compare an object with an object that was built from it."""
        return self.code, self.found, self.message
