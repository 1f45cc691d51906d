"""Expressions that are slow on long input. Each has its own policy about Pods with the policy's label.

Each validation is false at its end. So two answers are wrong: an allowed Pod under failurePolicy Fail, and a Pod that an
error denies under Ignore.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.bounds.reviews import JSON, Maker, container, pod

LABEL = "attack"
EVALUATED = "was evaluated to its end"


@dataclass(frozen=True)
class OwnPolicy:
    """A policy with one expression, which is false at its end, and a Pod of n pieces that makes the expression slow."""

    name: str
    expression: str
    maker: Maker
    ignored: bool = False

    @property
    def label(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.name.lower()).strip("-")

    def pod(self, n: int) -> JSON:
        made = self.maker(n)
        return {**made, "metadata": {**made["metadata"], "labels": {LABEL: self.label}}}


def words(n: int, word: str = "word-{i}") -> JSON:
    return pod(
        {"containers": [container("main", args=[word.format(i=i, high=i >> 16, low=i & 0xFFFF) for i in range(n)])]}
    )


def _text(letters: str) -> Maker:
    return lambda n: pod(metadata={"annotations": {"text": letters * n}})


def _numbered(word: str) -> Maker:
    return lambda n: words(n, word)


def _sorted(n: int) -> JSON:
    return words(n, "word-{i:08d}")


def _both(n: int) -> JSON:
    """Return a Pod with words and a text. Each has half of the size."""
    made = words(n // 2)
    return {**made, "metadata": {**made["metadata"], "annotations": {"text": "aaaaaaaaaa" * (n // 2)}}}


def _url(n: int) -> JSON:
    return pod(metadata={"annotations": {"text": "https://example.org/" + "a%20b/../" * n + "?" + "q=%zz&" * 3}})


WORDS, TEXT = "variables.words", "variables.text"
OWN = (
    OwnPolicy("all in all in all", f"!{WORDS}.all(a, {WORDS}.all(b, {WORDS}.all(c, a + b + c != '')))", words),
    OwnPolicy(
        "all in all in all, Ignore", f"!{WORDS}.all(a, {WORDS}.all(b, {WORDS}.all(c, a != '')))", words, ignored=True
    ),
    OwnPolicy("map in map", f"{WORDS}.map(a, {WORDS}.map(b, a + b)).size() < 0", words),
    OwnPolicy("filter in exists", f"{WORDS}.exists(a, {WORDS}.filter(b, b == a + '-').size() > 0)", words),
    OwnPolicy("missed indexOf", f"!{WORDS}.all(a, {WORDS}.indexOf('missing') == -1)", words),
    OwnPolicy("indexOf of itself", f"!{WORDS}.all(a, {WORDS}.indexOf(a) >= 0)", words),
    OwnPolicy("indexOf of itself, Ignore", f"!{WORDS}.all(a, {WORDS}.indexOf(a) >= 0)", words, ignored=True),
    OwnPolicy("in a list", f"!{WORDS}.all(a, a in {WORDS})", words),
    OwnPolicy("max and min", f"!{WORDS}.all(a, {WORDS}.max() != '' && {WORDS}.min() != '')", words),
    OwnPolicy("isSorted", f"!{WORDS}.all(a, {WORDS}.isSorted())", _sorted),
    OwnPolicy("sort", f"!{WORDS}.all(a, {WORDS}.sort().size() > 0)", words),
    OwnPolicy("sortBy", f"!{WORDS}.all(a, {WORDS}.sortBy(b, size(b)).size() > 0)", words),
    OwnPolicy("distinct", f"!{WORDS}.all(a, {WORDS}.distinct().size() > 0)", words),
    OwnPolicy("distinct maps", f"{WORDS}.map(a, {{'a': a}}).distinct().size() < 0", words),
    OwnPolicy("flatten", f"{WORDS}.map(a, [{WORDS}]).flatten(2).size() < 0", words),
    OwnPolicy("join", f"!{WORDS}.all(a, {WORDS}.join('-').size() > 0)", words),
    OwnPolicy("split and join", f"{TEXT}.split('').map(a, a + a).join('').split('a').size() < 0", _text("abc ")),
    OwnPolicy(
        "replace", f"{TEXT}.replace('a', 'aaaaaaaa').replace('a', 'aaaaaaaa').replace('a', 'b').size() < 0", _text("a")
    ),
    OwnPolicy("replace of nothing", f"{TEXT}.replace('', '{'x' * 100}').size() < 0", _text("abc ")),
    OwnPolicy("doubling texts", "[" + TEXT + "]" + ".map(a, a + a)" * 12 + "[0].size() < 0", _text("abc ")),
    OwnPolicy("doubling lists", "[" + WORDS + "]" + ".map(a, a + a)" * 14 + "[0].size() < 0", words),
    OwnPolicy("format", f"{WORDS}.map(a, '%.900f %s'.format([1.0, {TEXT}])).size() < 0", _both),
    OwnPolicy("format of a list", f"!{WORDS}.all(a, '%s'.format([{WORDS}]).size() > 0)", words),
    OwnPolicy("matches", f"!{WORDS}.all(a, {TEXT}.matches('(a|aa|aaa)+(b|bb)*$') || true)", _both),
    OwnPolicy("patterns of objects", f"!{WORDS}.all(a, {TEXT}.matches(a) || true)", _numbered("(a{i}|[^b]{{1,9}})+")),
    OwnPolicy("findAll", f"{TEXT}.findAll('a?b?c?(abc|bca)*').size() < 0", _text("abc ")),
    OwnPolicy("find in words", f"!{WORDS}.all(a, {TEXT}.find(a) != 'x')", _both),
    OwnPolicy("isURL", f"!isURL({TEXT}) || url({TEXT}).getHost() == 'x'", _url),
    OwnPolicy("isURL, Ignore", f"!isURL({TEXT}) || url({TEXT}).getHost() == 'x'", _url, ignored=True),
    OwnPolicy(
        "quantities",
        f"!{WORDS}.all(a, quantity(a).add(quantity('1Gi')).isGreaterThan(quantity('1')))",
        _numbered("{i}Gi"),
    ),
    OwnPolicy(
        "sum of quantities",
        f"!{WORDS}.all(a, {WORDS}.all(b, quantity(a).compareTo(quantity(b)) < 2))",
        _numbered("{i}Gi"),
    ),
    OwnPolicy(
        "semver",
        f"!{WORDS}.all(a, semver(a).isGreaterThan(semver('0.0.0')) || a == '1.0.0')",
        _numbered("1.{i}.0-rc.{i}"),
    ),
    OwnPolicy(
        "addresses", f"!{WORDS}.all(a, isIP(a) && cidr('fd00::/8').containsIP(a))", _numbered("fd00::{high:x}:{low:x}")
    ),
    OwnPolicy("sets.contains", f"!{WORDS}.all(a, sets.contains({WORDS}, {WORDS}))", words),
    OwnPolicy("sets.intersects", f"sets.intersects({WORDS}, {WORDS}.map(a, a + '-'))", words),
    OwnPolicy(
        "sets.equivalent of maps", f"!sets.equivalent({WORDS}.map(a, {{'a': a}}), {WORDS}.map(a, {{'a': a}}))", words
    ),
    OwnPolicy("lowerAscii", f"!{WORDS}.all(a, {TEXT}.lowerAscii() != a)", _both),
    OwnPolicy("transformMapEntry", f"{WORDS}.transformMapEntry(i, a, {{a: i}}).size() < 0", words),
    OwnPolicy("maps in maps", f"{WORDS}.map(a, {WORDS}.transformMapEntry(i, b, {{b: {{a: i}}}})).size() < 0", words),
    OwnPolicy("equal lists", f"!{WORDS}.all(a, {WORDS} == {WORDS}.map(b, b))", words),
    OwnPolicy("equal objects", "!variables.words.all(a, object == object && object.spec == object.spec)", words),
    OwnPolicy(
        "optionals",
        f"{WORDS}.map(a, object.?metadata.?labels[?a].or(optional.of(a)).orValue('')).distinct().size() < 0",
        words,
    ),
    OwnPolicy("ranges", "!lists.range(100000).all(i, lists.range(100000).all(j, i + j >= 0))", words),
    OwnPolicy("texts of numbers", f"!lists.range({10**6}).all(i, string(i) + {TEXT} != '')", _text("abc ")),
    OwnPolicy("bytes", f"!{WORDS}.all(a, bytes({TEXT}).size() + {TEXT}.upperAscii().size() > 0)", _both),
    OwnPolicy("huge message", f"{TEXT} == ''", _text("\\u202eabc ")),
)
