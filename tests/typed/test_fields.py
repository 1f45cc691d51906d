"""The values that a typed object reads from its JSON, and its values for other types."""

import pytest

from webhook.apimachinery.quantity import parse_quantity
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.typed import fields
from webhook.typed.view import ReadingContext, Typed


class Inner(Typed):
    name = fields.Text()


class Sample(Typed):
    text = fields.Text("default")
    number = fields.Number(7)
    optional_number = fields.OptionalNumber()
    truth = fields.Truth(default=True)
    optional_truth = fields.OptionalTruth()
    raw = fields.Raw()
    part = fields.Part(Inner)
    parts = fields.Parts(Inner)
    part_map = fields.PartMap(Inner)
    texts = fields.Texts()
    values = fields.Values()
    labels = fields.Labels()
    amounts = fields.Amounts()
    value_map = fields.ValueMap()
    quantities = fields.Quantities()
    text_lists = fields.TextListMap()
    number_map = fields.NumberMap()
    names = fields.Names()
    truths = fields.Truths()
    cluster_ip = fields.Text(name="clusterIP")


def sample(**json):
    return Sample(json, ("spec",), ReadingContext())


@pytest.mark.parametrize(
    ("attribute", "json", "value", "default"),
    [
        ("text", {"text": "a"}, "a", "default"),
        ("number", {"number": 3}, 3, 7),
        ("number", {"number": 3.0}, 3, 7),
        ("optional_number", {"optionalNumber": 0}, 0, None),
        ("truth", {"truth": False}, False, True),
        ("optional_truth", {"optionalTruth": False}, False, None),
        ("raw", {"raw": [1]}, [1], None),
        ("texts", {"texts": ["a", 1]}, ["a", ""], []),
        ("values", {"values": [1, None]}, [1, None], []),
        ("labels", {"labels": {"a": "b", "c": 1}}, {"a": "b"}, {}),
        ("amounts", {"amounts": {"cpu": 1, "memory": None}}, {"cpu": 1}, {}),
        ("quantities", {"quantities": {"cpu": "2k", "memory": "much"}}, {"cpu": parse_quantity("2k")}, {}),
        ("text_lists", {"textLists": {"a": ["b"], "c": None}}, {"a": ["b"]}, {}),
        ("number_map", {"numberMap": {"a": 1, "b": 2.0, "c": "3"}}, {"a": 1, "b": 2}, {}),
        ("names", {"names": [{"name": "a"}, {}, "b", {"name": 1}]}, ["a", "", "", ""], []),
        ("truths", {"truths": {"a": False, "b": "true"}}, {"a": False}, {}),
        ("cluster_ip", {"clusterIP": "None"}, "None", ""),
    ],
)
def test_a_field_has_its_value_or_its_default(attribute, json, value, default):
    assert getattr(sample(**json), attribute) == value
    name = next(iter(json))
    assert getattr(sample(), attribute) == default
    assert getattr(sample(**{name: None}), attribute) == default
    if attribute != "raw":
        assert getattr(sample(**{name: object()}), attribute) == default


def test_a_boolean_is_not_a_number():
    assert (sample(number=True).number, sample(optionalNumber=True).optional_number) == (7, None)


def test_a_part_knows_its_path():
    read = sample(part={"name": "a"}, parts=[{"name": "b"}], partMap={"k": {"name": "c"}})
    assert (read.part.name, read.part.path("name")) == ("a", ("spec", "part", "name"))
    assert (read.parts[0].name, read.parts[0].at) == ("b", ("spec", "parts", 0))
    assert (read.part_map["k"].name, read.part_map["k"].at) == ("c", ("spec", "partMap", "k"))


def test_an_object_under_an_undeclared_name_knows_its_path():
    there, not_there = (fields.part_at(sample(any={"name": "a"}), name, Inner) for name in ("any", "other"))
    assert (there.name, there.at, bool(not_there), not_there.name) == ("a", ("spec", "any"), False, "")


def test_a_missing_part_is_false_and_empty():
    assert (bool(sample().part), sample().part.name, bool(sample(part={}).part)) == (False, "", True)


def test_a_value_that_is_not_an_object_is_false():
    assert (bool(Inner.of("text")), bool(Inner.of(None)), Inner.of({"name": "a"}, ("x",)).path("name")) == (
        False,
        False,
        ("x", "name"),
    )


def test_an_entry_that_is_not_an_object_keeps_the_indices_of_the_others():
    first, second = sample(parts=["text", {"name": "b"}]).parts
    assert (bool(first), second.name, second.at) == (False, "b", ("spec", "parts", 1))


def test_an_omitted_field_counts_as_set():
    read = Sample({"text": None}, ("spec",), ReadingContext(omitted=frozenset({("spec", "part")})))
    assert (read.has("part"), read.has("text"), read.is_omitted("part")) == (True, False, True)


def test_objects_are_compared_by_some_or_all_fields():
    one, other = sample(text="a", number=1), sample(text="a", number=2)
    assert (one.differs(other), one.differs(other, "text"), one.differs(other, "text", "number")) == (True, False, True)


MAPS = ("part_map", "labels", "amounts", "quantities", "text_lists", "number_map", "truths")


@pytest.mark.parametrize("attribute", ["parts", "texts", "names", *MAPS])
def test_reading_a_long_list_or_map_ends_with_the_time(attribute):
    name = fields.camel_case(attribute)
    long = {str(index): "1" for index in range(1000)} if attribute in MAPS else ["1"] * 1000
    with pytest.raises(BudgetExceeded):
        getattr(Sample({name: long}, (), ReadingContext(Deadline(at=0))), attribute)


def test_a_map_of_values_keeps_null():
    assert sample(valueMap={"a": None, "b": 1}).value_map == {"a": None, "b": 1}
    assert sample(valueMap=["a"]).value_map == {}


@pytest.mark.parametrize("field", ["part", "parts", "amounts", "value_map"])
def test_an_object_that_was_decoded_has_nothing_of_another_type(field):
    name = fields.camel_case(field)
    assert not getattr(Sample({name: 1.5}, ("spec",), ReadingContext()), field)
    assert not getattr(Sample({name: None}, ("spec",), ReadingContext(is_decoded=True)), field)
    with pytest.raises(TypeError, match="of another type"):
        getattr(Sample({name: 1.5}, ("spec",), ReadingContext(is_decoded=True)), field)
