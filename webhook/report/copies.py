"""Reports a mistake in copies of an object as one finding with several places.

An API version that is no longer served is one mistake in all objects of this version. A missing `---` is also one
mistake. An author copies some mistakes from file to file, such as a field that does not exist. Objects of one
kind with such a mistake at the same place have one mistake. Each overlay of kustomize repeats the objects of its
base, and a folder such as `bundle/` or `dist/` repeats those of `config/`. A loop in a template of a chart makes many
objects. A series of objects in one file, such as worker-0 to worker-3, also repeats a mistake, and so do copies of a
pod template in one object. All places of a finding are known only at the end, so findings are kept until then, in a
file if there are many (spool).
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.report.counts import FINDINGS
from webhook.report.finding import Copy, Finding, Result
from webhook.report.rule import Rules
from webhook.report.screen import Screen, ScreenAwareWriter
from webhook.report.spool import Spool
from webhook.report.writer import Totals, Writer

_MOST_REMEMBERED: Final = 100_000
"""The most findings and copies that are compared; every later finding is reported separately."""


class RenderedText(Struct, frozen=True):
    """How a folder was rendered.

    affixes: the prefixes and suffixes that an overlay adds to names, the longest first. templates: for each template
    in order, the line, from 1, where its text begins, and its path.
    """

    affixes: Sequence[str] = ()
    templates: Sequence[tuple[int, str]] = ()

    def template_of_line(self, line: int) -> str:
        """Return the path of the template that made a line; "" if no template did."""
        number = bisect_right(self.templates, line, key=lambda each: each[0])
        return self.templates[number - 1][1] if number else ""


RenderedTexts: TypeAlias = Mapping[str, RenderedText]
"""How folders were rendered, by the paths of the folders."""
_AS_WRITTEN: Final = RenderedText()
_API_VERSION: Final = "apiVersion"
"""Findings about the version or the beginning of an object have this path, and findings about other fields do not."""
_HABITS: Final = frozenset(
    (
        "manifest-shape/unknown-field",
        "manifest-shape/volume-exists",
        "manifest/repeated-key",
        "device-failures/pod-failure-policy",
        "device-failures/ray-job-retries",
    )
)
"""Rules about mistakes that an author copies to objects with other names."""
_NUMBER: Final = re.compile(r"(?<![0-9])[0-9]{1,9}(?![0-9])")
"""Matches a number in a name. Objects of a series have names that differ only in such a number."""
_TEMPLATE: Final = "emplate."
"""A path up to this text names the role of a job, such as `Master.template.` and `leaderTemplate.`."""
_CAUSES: Final[Mapping[str, str]] = {"claims-exactly-one/source-required": "resource-claims/served-version"}
"""Rules that are broken as an effect of another mistake in the file, each with the rule about the cause: pods of
Kubernetes 1.30 name their claims in `source`, and claims of this release have a version that later releases do not
serve.
"""


class CopiesWriter:
    """Passes findings on to another writer at the end. Findings about copies are passed on and counted as one
    finding.
    """

    def __init__(self, writer: Writer[Finding], rendered: RenderedTexts) -> None:
        """Pass findings on to `writer`; `rendered` says how folders were rendered."""
        self._writer = writer
        self._rendered = rendered
        self._kept: Spool[Finding] = Spool()
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._copies: dict[int, list[Copy]] = {}
        self._repeated: Counter[Result] = Counter()
        self._causes: dict[tuple[str, str], int] = {}
        self._effects: dict[int, tuple[str, str]] = {}
        self._remembered = 0
        self._next_number = 0
        self._file = ""
        self._in_file: Counter[bytes] = Counter()

    def use_screen(self, screen: Screen) -> None:
        """Use this screen, if the format depends on one."""
        if isinstance(self._writer, ScreenAwareWriter):
            self._writer.use_screen(screen)

    def begin(self, rules: Rules) -> Iterable[str]:
        """Return the text before the first entry."""
        return self._writer.begin(rules)

    def entry(self, entry: Finding) -> Iterable[str]:
        """Keep a finding, or only its place if it is about a copy. The findings of a file must follow each other."""
        first = self._number_of_first(entry)
        number = self._next_number if first is None else first
        if entry.rule.id in _CAUSES.values():
            self._causes.setdefault((entry.place.file, entry.rule.id), number)
        if first is None:
            if cause := _CAUSES.get(entry.rule.id):
                self._effects[number] = entry.place.file, cause
            self._kept.append(entry)
            self._next_number += 1
            return ()
        self._copies.setdefault(first, []).append(Copy(entry.place, entry.subject))
        if not entry.is_advice:
            self._repeated[entry.result] += 1
        return ()

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the text of all entries, and the end."""
        self._add_effects_to_causes()
        for number, finding in enumerate(self._kept):
            if number in self._effects:
                continue
            copies = self._copies.get(number)
            yield from self._writer.entry(replace(finding, also_in=tuple(copies)) if copies else finding)
        counts = replace(totals.counts, results=totals.counts.results - self._repeated)
        yield from self._writer.end(replace(totals, counts=counts))

    def _add_effects_to_causes(self) -> None:
        """Add each effect of a reported mistake, with its copies, as a place of this mistake."""
        self._effects = {number: cause for number, cause in self._effects.items() if cause in self._causes}
        for number, finding in enumerate(self._kept) if self._effects else ():
            if cause := self._effects.get(number):
                places = (Copy(finding.place, finding.subject), *self._copies.get(number, ()))
                self._copies.setdefault(self._causes[cause], []).extend(places)
                self._repeated[finding.result] += 1

    def _number_of_first(self, finding: Finding) -> int | None:
        """Return the number of the earlier finding with the same mistake; None if this finding is the first.

        All findings of one file are reported, except those of objects that one template made, of objects in the same
        API version, of a series of objects, and of the pod templates of one object. So the second finding of a
        mistake in one file is compared only with the second finding of this mistake in another file.
        """
        is_of_version = finding.path == _API_VERSION
        if finding.result not in FINDINGS or self._remembered >= _MOST_REMEMBERED:
            return None
        if not finding.subject.name and not is_of_version:
            return None
        self._remembered += 1
        if finding.place.file != self._file:
            self._file = finding.place.file
            self._in_file.clear()
        rendered = self._rendered.get(finding.place.file, _AS_WRITTEN)
        template = rendered.template_of_line(finding.place.line)
        if is_of_version:
            mistake = _digest_of_version(finding)
        else:
            mistake = _digest_of_mistake(finding, rendered.affixes, template)
        self._in_file[mistake] += 1
        key = mistake, 1 if template or is_of_version else self._in_file[mistake]
        if key in self._numbers:
            return self._numbers[key]
        series = _digest_of_series(finding) if finding.place.file not in self._rendered else b""
        alike = [(series, 1), (_digest_of_habit(finding), 1), (_digest_of_template(finding), key[1])]
        alike = [each for each in alike if each[0]]
        first = next((self._numbers[each] for each in alike if each in self._numbers), None)
        number = self._next_number if first is None else first
        self._numbers[key] = number
        for each in alike:
            self._numbers.setdefault(each, number)
        return first


def _digest_of_mistake(finding: Finding, affixes: Sequence[str], template: str) -> bytes:
    """Return a digest of a mistake as a reader recognizes it, without file and namespace.

    The digest includes the source line, so that different objects of the same name differ. For an object from a
    template, the template is used instead of the name, because one template may make objects with many names.
    """
    about = finding.subject
    added = (about.name, *affixes) if template else affixes
    texts = (
        f"{finding.place.file} {template}" if template else about.name,
        finding.message,
        finding.line.text if finding.line else "",
    )
    return _digest(
        *_parts_of_mistake(finding), about.kind, *(_text_of_base(text, about.namespace, added) for text in texts)
    )


def _digest_of_series(finding: Finding) -> bytes:
    """Return a digest of a mistake in a file, without the number in the object's name; b"" if the name has no
    number.
    """
    about = finding.subject
    name = _NUMBER.sub("#", about.name)
    if name == about.name:
        return b""
    texts = (
        finding.message.replace(about.name, name),
        (finding.line.text if finding.line else "").replace(about.name, name),
    )
    return _digest(*_parts_of_mistake(finding), finding.place.file, about.kind, about.namespace, name, *texts)


def _digest_of_habit(finding: Finding) -> bytes:
    """Return a digest of a mistake at a place of all objects of a kind; b"" unless authors copy such mistakes."""
    if finding.rule.id not in _HABITS:
        return b""
    return _digest(*_parts_of_mistake(finding), finding.subject.kind, finding.message)


def _digest_of_version(finding: Finding) -> bytes:
    """Return a digest of a mistake in the version of an object.

    If a release stops serving several versions with the same successor, all objects of these versions have one
    mistake. An example is Kubernetes 1.16, without extensions/v1beta1, apps/v1beta1 and apps/v1beta2. The fix names
    the kind if the kind changed.
    """
    problem, decision = finding.problem, finding.decision
    if problem is None or not problem.release:
        return _digest(*_parts_of_mistake(finding), finding.message)
    advice = "advice" if finding.is_advice else ""
    kept = (finding.rule.id, decision.policy, decision.param, problem.release, problem.fix)
    return _digest(str(finding.result), advice, *kept)


def _digest_of_template(finding: Finding) -> bytes:
    """Return a digest of a mistake in a pod template, without the role of the template; b"" outside pod templates."""
    about = finding.subject
    path = finding.path.rpartition(_TEMPLATE)[-1]
    if path == finding.path:
        return b""
    of_role = finding.path[: -len(path)].rpartition(".")[0].rpartition(".")[0]
    message = finding.message.replace(of_role, "") if of_role else finding.message
    line = finding.line.text.strip() if finding.line else ""
    names = finding.place.file, about.kind, about.namespace, about.name
    return _digest(*_parts_of_mistake(finding, path), *names, message, line)


def _parts_of_mistake(finding: Finding, path: str | None = None) -> Iterator[str]:
    """Yield the values that are equal in all findings about one mistake. `path` replaces the path of the finding."""
    about, decision = finding.subject, finding.decision
    yield str(finding.result)
    yield "advice" if finding.is_advice else ""
    place = finding.path if path is None else path
    yield from (finding.rule.id, decision.policy, decision.param, about.api_version, place)


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=16).digest()


def _text_of_base(text: str, namespace: str, affixes: Sequence[str]) -> str:
    """Return a text without the namespace, and without the additions of an overlay to names."""
    words = []
    for word in text.replace("`", " ").split():
        name = word.strip(",;:()").removeprefix(f"{namespace}/")
        for affix in affixes:
            name = name.removeprefix(affix).removesuffix(affix)
        words.append("" if name == namespace else name)
    return " ".join(words)
