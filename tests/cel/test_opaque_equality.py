"""Equality of opaque values: what the Kubernetes 1.36 environment (k8s.io/apiserver v0.36.1, cel-go v0.26.0) answered."""

import pytest

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.errors import NoSuchOverload

REFUSED = "no such overload"


@all_rows(
    "text, expected, cost",
    [
        ("ip('1.1.1.1') == dyn('x')", REFUSED, 2),
        ("optional.of(dyn(ip('1.1.1.1'))) == optional.of(dyn('x'))", REFUSED, 5),
        ("[dyn(ip('1.1.1.1'))] == [dyn('x')]", True, 13),
        ("dyn(ip('1.1.1.1')) in [dyn('x'), dyn(ip('1.1.1.1'))]", True, None),
        ("[dyn(ip('1.1.1.1')), dyn('x')].indexOf(dyn('x'))", 1, None),
        ("[dyn(ip('1.1.1.1')), dyn('x')].distinct().size()", 2, None),
        # a sum or a difference is an error to the right of `==`
        ("quantity('2') == quantity('1').add(1)", REFUSED, 4),
        ("quantity('2') != quantity('1').add(1)", True, 4),
        ("quantity('1').add(1) == quantity('2')", True, 4),
        ("quantity('1').sub(1) == quantity('1').sub(1)", REFUSED, 5),
        ("optional.of(quantity('2')) == optional.of(quantity('1').add(1))", REFUSED, 6),
        ("[quantity('3')] == [quantity('1').add(1)]", True, 24),
        ("quantity('2') in [quantity('1').add(1)]", False, 14),
        ("[quantity('2')].indexOf(quantity('1').add(1))", -1, 14),
        ("sets.contains([quantity('2')], [quantity('1').add(1)])", True, 25),
        ("[quantity('2'), quantity('1').add(1)].distinct().size()", 1, 33),
        ("quantity('2').compareTo(quantity('1').add(1)) == 0", True, None),
        ("type(quantity('1').add(1)) == type(quantity('1'))", True, None),
    ],
)
def test_opaque_values(text, expected, cost):
    program = compiled_engine().compile(text, Environment())
    meter = CostMeter()
    if expected is REFUSED:
        with pytest.raises(NoSuchOverload, match="no such overload"):
            program.evaluate({}, meter)
    else:
        assert program.evaluate({}, meter) == expected
    assert cost in (None, meter.spent)
