"""Decides whether a pattern of Python's `re` can take more than linear time, from its structure and not by a clock.

`re` backtracks: if two ways through a pattern read the same text, `re` tries both before it gives up. A pattern is
linear unless one of these is possible (Weber and Seidl 1991, Weideman and others 2016):

- A loop reads a word in two ways. The time is exponential.
- Two loops and the way between them all read the same word. The time is quadratic or worse. A search anywhere in a text
  is also a first loop.

A loop counts only if the pattern may still fail after it. The analysis knows `\\b`, lookahead and lookbehind of one
character, and possessive repeats of one character. Other lookahead, lookbehind and possessive parts are ignored. A
linear pattern with these parts may therefore count as "not linear".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final, TypeAlias, TypeVar

_MOST_COPIES: Final = 300
"""A repeat of one character is copied up to this count. Above it, the repeat is a loop."""
_UNICODE: Final = "\u0130\u0131\u017f\u0660\u00b2\u2003\u2028\u4e16\U0001f600"


class Use(Enum):
    """How a pattern is used.

    Attributes:
        ANYWHERE: the pattern is tried at every place of a text, as `search`, `findall` and `sub` do.
        BEGINNING: the pattern is tried once, at the beginning of a text.
        WHOLE: the pattern is tried once, and must match the whole text.
        IN_A_ROW: each match begins at the end of the previous match. The search ends at the first failure.
    """

    ANYWHERE = auto()
    BEGINNING = auto()
    WHOLE = auto()
    IN_A_ROW = auto()


class NotAnalysedError(Exception):
    """A pattern has a part that the analysis does not support."""


@dataclass(frozen=True)
class _Condition:
    """A condition on the characters before and after a position.

    Attributes:
        characters: the previous character must be one of these (`before`), or the next character (`after`), or exactly
            one of the two.
        negated: the demand must not be met.
    """

    characters: frozenset[str]
    before: bool
    after: bool
    negated: bool

    def is_met(self, before: frozenset[str] | None, after: frozenset[str]) -> bool:
        """Return whether the characters before and after meet the demand. None means the beginning of the text."""
        is_before = self.before and before is not None and before <= self.characters
        is_after = self.after and after <= self.characters
        return (is_before != is_after) != self.negated


@dataclass
class _Graph:
    """The ways through a pattern, as a graph of states.

    Attributes:
        free: for each state, the states that follow without reading a character.
        begins: for each state, the states that follow only at the beginning of the text.
        asks: for each state, the states that follow under a condition on the text; None for an unknown condition.
        takes_all: for each state, the states that follow after a possessive repeat, with the condition on the next
            character.
        reads: for each state, the characters that it reads and the next state.
    """

    free: list[list[int]] = field(default_factory=list)
    begins: list[list[int]] = field(default_factory=list)
    asks: list[list[tuple[int, _Condition | None]]] = field(default_factory=list)
    takes_all: list[list[tuple[int, _Condition]]] = field(default_factory=list)
    reads: list[tuple[frozenset[str], int] | None] = field(default_factory=list)

    def state(self) -> int:
        self.free.append([])
        self.begins.append([])
        self.asks.append([])
        self.takes_all.append([])
        self.reads.append(None)
        return len(self.free) - 1


def _is_one_character(items: Any) -> bool:
    return len(items) == 1 and items[0][0] in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY)


class _Reader:
    def __init__(self, pattern: re.Pattern[Any]) -> None:
        text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        self.flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags | re.ASCII
        self.parsed = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        spelled = {chr(at) for each in map(ord, text) for at in (each - 1, each, each + 1) if 0 <= at < 0x110000}
        self.alphabet = frozenset(map(chr, range(256))) | frozenset(_UNICODE) | spelled
        self.graph = _Graph()
        self.sets: dict[str, frozenset[str]] = {}

    def sequence(self, items: Iterable[tuple[Any, Any]], at: int) -> int:
        for code, value in items:
            at = self.item(code, value, at)
        return at

    def item(self, code: Any, value: Any, at: int) -> int:
        match code:
            case op.LITERAL | op.NOT_LITERAL | op.IN | op.ANY:
                return self._read(self._characters(code, value), at)
            case op.SUBPATTERN:
                return self._flagged(value[1], value[2], value[3], at)
            case op.ATOMIC_GROUP:
                return self.sequence(value, at)
            case op.BRANCH:
                end = self.graph.state()
                for branch in value[1]:
                    begin = self.graph.state()
                    self.graph.free[at].append(begin)
                    self.graph.free[self.sequence(branch, begin)].append(end)
                return end
            case op.POSSESSIVE_REPEAT if value[1] is op.MAXREPEAT and _is_one_character(value[2]):
                last, end = self._repeat(*value, at), self.graph.state()
                taken = self._characters(*value[2][0])
                self.graph.takes_all[last].append((end, _Condition(taken, before=False, after=True, negated=True)))
                return end
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                return self._repeat(*value, at)
            case op.AT:
                return self._place(value, at)
            case op.ASSERT | op.ASSERT_NOT:
                return self._look(value[0] > 0, value[1], code is op.ASSERT_NOT, at)
        raise NotAnalysedError(str(code))

    def _place(self, where: Any, at: int) -> int:
        if where is op.AT_BEGINNING_STRING or (where is op.AT_BEGINNING and not self.flags & re.MULTILINE):
            end = self.graph.state()
            self.graph.begins[at].append(end)
            return end
        if where in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY):
            words = self._characters(op.CATEGORY, op.CATEGORY_WORD)
            return self._ask(at, _Condition(words, before=True, after=True, negated=where is op.AT_NON_BOUNDARY))
        if where in (op.AT_BEGINNING, op.AT_END) and self.flags & re.MULTILINE:
            ahead, line = where is op.AT_END, self.alphabet - {"\n"}
            return self._ask(at, _Condition(line, before=not ahead, after=ahead, negated=True))
        return self._ask(at, None)

    def _look(self, ahead: bool, items: Any, negated: bool, at: int) -> int:
        if _is_one_character(items):
            characters = self._characters(*items[0])
            return self._ask(at, _Condition(characters, before=not ahead, after=ahead, negated=negated))
        if ahead:  # the pattern may read the characters inside, and then fail
            self.sequence(items, self._ask(at, None))
        return self._ask(at, None)

    def _ask(self, at: int, condition: _Condition | None) -> int:
        end = self.graph.state()
        self.graph.asks[at].append((end, condition))
        return end

    def _read(self, characters: frozenset[str], at: int) -> int:
        begin, end = self.graph.state(), self.graph.state()
        self.graph.free[at].append(begin)
        self.graph.reads[begin] = characters, end
        return end

    def _flagged(self, add: int, remove: int, items: Any, at: int) -> int:
        before, self.flags = self.flags, (self.flags | add) & ~remove
        end = self.sequence(items, at)
        self.flags = before
        return end

    def _repeat(self, least: int, most: int, items: Any, at: int) -> int:
        for _ in range(min(least, _MOST_COPIES)):
            at = self.sequence(items, at)
        if least == most:
            return at
        end = self.graph.state()
        self.graph.free[at].append(end)
        if most == 1 or (_is_one_character(items) and most <= _MOST_COPIES):
            for _ in range(most - least):
                at = self.sequence(items, at)
                self.graph.free[at].append(end)
            return end
        begin = self.graph.state()
        self.graph.free[at].append(begin)
        last = self.sequence(items, begin)
        self.graph.free[last].append(begin)
        self.graph.free[last].append(end)
        return end

    def _characters(self, code: Any, value: Any) -> frozenset[str]:
        key = f"{code} {value} {self.flags}"
        if key not in self.sets:
            self.sets[key] = self._find_characters(code, value)
        return self.sets[key]

    def _find_characters(self, code: Any, value: Any) -> frozenset[str]:
        found = frozenset(each for each in self.alphabet if self._has(code, value, each))
        if code in (op.LITERAL, op.IN) and self.flags & re.IGNORECASE:
            found |= {each for each in self.alphabet for other in found if each.lower() == other.lower()}
        return found

    def _has(self, code: Any, value: Any, character: str) -> bool:
        match code:
            case op.ANY:
                return character != "\n" or bool(self.flags & re.DOTALL)
            case op.LITERAL:
                return ord(character) == value
            case op.NOT_LITERAL:
                return ord(character) != value
            case op.RANGE:
                return bool(value[0] <= ord(character) <= value[1])
            case op.CATEGORY:
                return self._is_of_category(value, character)
            case op.IN:
                negated = value[0][0] is op.NEGATE
                return negated != any(self._has(*each, character) for each in value[negated:])
        raise NotAnalysedError(str(code))

    def _is_of_category(self, category: Any, character: str) -> bool:
        name = str(category).removeprefix("CATEGORY_")
        letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.removeprefix("NOT_")]
        found = re.match(rf"\{letter}", character, self.flags & re.ASCII) is not None
        return found != name.startswith("NOT_")


_Place: TypeAlias = tuple[int, int]
"""A state that reads, with a bit for each kind of character that it reads."""
_Pair: TypeAlias = tuple[_Place, _Place]
"""Two places that the same word reaches."""
_Node = TypeVar("_Node", bound=Hashable)


class _Automaton:
    """The places of a pattern, each of which reads one character, and the characters that may follow each."""

    def __init__(self, pattern: re.Pattern[Any], use: Use) -> None:
        reader = _Reader(pattern)
        graph = self._graph = reader.graph
        start = graph.state()
        accept = reader.sequence(reader.parsed, start)
        if use is Use.IN_A_ROW:
            graph.free[accept].append(start)
        conditions = [each for asks in (*graph.asks, *graph.takes_all) for _, each in asks if each is not None]
        self._classes = _classes_of(reader.alphabet, [each.characters for each in conditions])
        sets = [reads[0] for reads in graph.reads if reads is not None]
        self.kinds = _classes_of(reader.alphabet, [*self._classes, *sets])
        self._bits = {each: self._bits_of(each) for each in {*self._classes, *sets, reader.alphabet}}
        self.follow: dict[_Place, dict[_Place, int]] = {}
        self.ends_here: set[_Place] = set()
        waiting = deque(self._ways(start, None))
        if use is Use.ANYWHERE:
            skip = graph.state()
            graph.free[skip].append(start)
            graph.reads[skip] = reader.alphabet, skip
            waiting.extend(self._ways(skip, None))
        while waiting:
            place = waiting.popleft()
            reads = graph.reads[place[0]]
            if place in self.follow or reads is None:
                continue
            self.follow[place] = self._ways(reads[1], self._class_of(place))
            if use is not Use.WHOLE and self._is_sure(reads[1], accept):
                self.ends_here.add(place)
            waiting.extend(self.follow[place])

    def _bits_of(self, characters: frozenset[str]) -> int:
        return sum(1 << at for at, kind in enumerate(self.kinds) if kind <= characters)

    def _ways(self, at: int, before: frozenset[str] | None) -> dict[_Place, int]:
        """Return the number of ways to each place. Numbers above two count as two."""
        count: dict[tuple[int, frozenset[int]], int] = {}
        found: dict[_Place, int] = {}

        def walk(state: int, classes: frozenset[int], on_the_way: frozenset[int]) -> None:
            if state in on_the_way or count.get((state, classes), 0) >= 2 or not classes:
                return
            count[state, classes] = count.get((state, classes), 0) + 1
            reads = self._graph.reads[state]
            for each in classes if reads is not None else ():
                common = self._bits[self._classes[each]] & self._bits[reads[0]]
                if common:
                    found[state, common] = found.get((state, common), 0) + 1
            for then in (*self._graph.free[state], *(self._graph.begins[state] if before is None else ())):
                walk(then, classes, on_the_way | {state})
            for then, condition in (*self._graph.asks[state], *self._graph.takes_all[state]):
                met = {i for i in classes if condition is None or condition.is_met(before, self._classes[i])}
                walk(then, frozenset(met), on_the_way | {state})

        walk(at, frozenset(range(len(self._classes))), frozenset())
        return found

    def _class_of(self, place: _Place) -> frozenset[str]:
        return next(each for each in self._classes if place[1] & self._bits[each])

    def _is_sure(self, at: int, accept: int) -> bool:
        """Return whether the pattern has matched here, with any text after it."""
        seen, waiting = {at}, [at]
        while waiting:
            state = waiting.pop()
            if state == accept:
                return True
            further = {*self._graph.free[state], *(each for each, _ in self._graph.takes_all[state])} - seen
            waiting.extend(further)
            seen |= further
        return False

    def pairs_in_loops(self, firsts: Collection[_Place], seconds: Collection[_Place]) -> dict[_Pair, int]:
        """Return the pairs of places that some word leads back to, each with the number of its component.

        Only places in loops can be in such a pair.
        """
        looping = _components({place: [*then] for place, then in self.follow.items()}).keys()
        firsts, seconds = looping & firsts, looping & seconds
        steps: dict[_Pair, list[_Pair]] = {}
        waiting = [(a, b) for a in firsts for b in seconds if a[1] & b[1]]
        for pair in waiting:
            further = ((a, b) for a in self.follow[pair[0]] for b in self.follow[pair[1]] if a[1] & b[1])
            steps[pair] = [(a, b) for a, b in further if a in firsts and b in seconds]
        return _components(steps)

    def shown(self, bits: int) -> str:
        """Return one character of these kinds, printable if possible."""
        characters = (each for at, kind in enumerate(self.kinds) if bits >> at & 1 for each in kind)
        return min(characters, key=lambda each: (not each.isalnum(), not each.isprintable(), each))


def _components(steps: Mapping[_Node, Sequence[_Node]]) -> dict[_Node, int]:
    """Return the strongly connected components of a graph that have a loop (Tarjan 1972), without recursion."""
    index: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    open_: list[_Node] = []
    found: dict[_Node, int] = {}
    done: set[_Node] = set()
    for root in steps:
        ways = [] if root in index else [(root, iter(steps[root]))]
        if ways:
            index[root] = low[root] = len(index)
            open_.append(root)
        while ways:
            pair, further = ways[-1]
            then = next(further, None)
            if then is None:
                ways.pop()
                if ways:
                    low[ways[-1][0]] = min(low[ways[-1][0]], low[pair])
                if low[pair] == index[pair]:
                    members = [open_.pop()]
                    while members[-1] != pair:
                        members.append(open_.pop())
                    done.update(members)
                    if len(members) > 1 or pair in steps[pair]:
                        found.update(dict.fromkeys(members, index[pair]))
            elif then not in index:
                index[then] = low[then] = len(index)
                open_.append(then)
                ways.append((then, iter(steps[then])))
            elif then not in done:
                low[pair] = min(low[pair], index[then])
    return found


def _classes_of(alphabet: frozenset[str], sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    classes = [alphabet]
    for each in sets:
        classes = [part for one in classes for part in (one & each, one - each) if part]
    return classes


def why_not_linear(pattern: re.Pattern[Any], use: Use) -> str:
    """Return the part of a pattern that takes more than linear time; "" if there is none."""
    automaton = _Automaton(pattern, use)
    failing = automaton.follow.keys() - automaton.ends_here
    word = _read_in_two_ways(automaton, automaton.pairs_in_loops(failing, failing))
    if word:
        return f"exponential: a loop reads {word!r} in two ways"
    word = _read_by_two_loops(automaton, automaton.pairs_in_loops(automaton.follow, failing))
    return f"quadratic: two loops in a row read {word!r}" if word else ""


def _read_in_two_ways(automaton: _Automaton, components: Mapping[_Pair, int]) -> str:
    """Return a word that leads from a place back to it in two ways; "" for none."""
    follow = automaton.follow

    def steps(state: tuple[_Pair, bool]) -> Iterator[tuple[tuple[_Pair, bool], int]]:
        (one, other), differ = state
        for a, ways in follow[one].items():
            for b in follow[other]:
                if components.get((a, b)) == components[one, other]:
                    yield ((a, b), differ or a != b or ways > 1), a[1] & b[1]

    for one, other in _one_of_each({pair: number for pair, number in components.items() if pair[0] == pair[1]}):
        word = _word(automaton, ((one, other), False), ((one, other), True), steps)
        if word:
            return word
    return ""


def _read_by_two_loops(automaton: _Automaton, components: Mapping[_Pair, int]) -> str:
    """Return a word that a loop, a second loop and the way between the loops all read; "" if there is none."""
    follow = automaton.follow

    def steps(state: tuple[_Place, _Place, _Place]) -> Iterator[tuple[tuple[_Place, _Place, _Place], int]]:
        one, between, two = state
        for a in follow[one]:
            for c in follow[two]:
                if components.get((a, c)) == components[one, two]:
                    both = a[1] & c[1]
                    for b in follow[between]:
                        if both & b[1]:
                            yield (a, b, c), both & b[1]

    for first, second in _one_of_each({pair: number for pair, number in components.items() if pair[0] != pair[1]}):
        word = _word(automaton, (first, first, second), (first, second, second), steps)
        if word:
            return word
    return ""


def _one_of_each(components: Mapping[_Pair, int]) -> Iterable[_Pair]:
    """Return one pair of each component: words lead from each pair of a component to every other pair, and back."""
    return {number: pair for pair, number in components.items()}.values()


def _word(automaton: _Automaton, begin: Any, end: Any, steps: Callable[[Any], Iterator[tuple[Any, int]]]) -> str:
    """Return the shortest word that leads from one state to another; "" for none."""
    came: dict[Any, tuple[Any, int]] = {}
    waiting = deque([begin])
    while waiting:
        state = waiting.popleft()
        for then, bits in steps(state):
            if then not in came:
                came[then] = state, bits
                waiting.append(then)
        if end in came:
            return "".join(reversed([*_spelled(automaton, came, begin, end)]))
    return ""


def _spelled(automaton: _Automaton, came: dict[Any, tuple[Any, int]], begin: Any, end: Any) -> Iterator[str]:
    state = None
    while state != begin:
        state, bits = came[end if state is None else state]
        yield automaton.shown(bits)
