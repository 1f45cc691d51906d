"""Valid and invalid device selectors, for tests/dra_variants.py."""

from __future__ import annotations


def wide(count: int) -> str:
    """Return nested loops over constants, with 10 to the power of `count` steps."""
    body = "true"
    for index in range(count):
        body = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x{index}, {body})"
    return body


DOMAIN = 'device.attributes["gpu.example.com"]'
EXPRESSIONS = (
    "true", "false", "1", "?!", "device", "device.driver", 'device.driver == "x"', "device.name == 'x'", "devices.driver == 'x'",
    "object.metadata.name == 'x'", DOMAIN, f"{DOMAIN}.model", f"{DOMAIN}.model == 'a100'", f"{DOMAIN}['model'] == 'a100'", f"{DOMAIN}.model > 0",
    f"{DOMAIN}.model && true", f"!{DOMAIN}.model", f"{DOMAIN}.model.a == 1", f"{DOMAIN}.model['a'] == 1", f"{DOMAIN}.model[0] == 1",
    f"{DOMAIN}.model.exists(x, x > 0)", f"{DOMAIN}.model.size() > 2", f"size({DOMAIN}.model) > 2", f"{DOMAIN}.model.includes('x')",
    f"'x' in {DOMAIN}.model", f"{DOMAIN}.model in ['a', 'b']", f"{DOMAIN}.model in [1, 2]", f"{DOMAIN}.model.matches('[a-z]+')",
    f"{DOMAIN}.model.matches('[')", f"{DOMAIN}.model.split('-').size() > 1", f"{DOMAIN}.model.startsWith('a')", f"{DOMAIN}.model + 'x' == 'ax'",
    f"{DOMAIN}.model + 1 > 2", f"string({DOMAIN}.model) == 'a'", f"int({DOMAIN}.model) == 1", f"dyn({DOMAIN}.model) == 1", f"dyn({DOMAIN}.model)",
    f"type({DOMAIN}.model) == string", f"[{DOMAIN}.model, 'a'].exists(x, x == 'a')", f"[{DOMAIN}.model, 1].size() == 2", f"{DOMAIN}.?model.hasValue()",
    f"{DOMAIN}.?model.orValue('') == 'x'", f"{DOMAIN}[?'model'].orValue(false)", f"has({DOMAIN}.model)", f"has({DOMAIN}.model.x)",
    f"{DOMAIN}.driverVersion.isGreaterThan(semver('1.0.0'))", f"{DOMAIN}.driverVersion.compareTo(semver('1.0.0')) >= 0",
    f"{DOMAIN}.driverVersion.isGreaterThan(semver('1.0'))", f"{DOMAIN}.driverVersion.isGreaterThan(semver('v1.0', true))",
    f"{DOMAIN}.model ? true : false", f"true ? {DOMAIN}.model : false", f"true ? {DOMAIN}.model : 'a'", f"({DOMAIN}.model).lowerAscii() == 'a'",
    f"{DOMAIN}.exists(x, x == 'model')", f"{DOMAIN}.exists(k, v, v == 'a100')", f"{DOMAIN}.all(k, v, v)", f"{DOMAIN}.exists_one(x, x == 'a')",
    "'gpu.example.com' in device.attributes", "device.attributes.exists(d, d == 'x')", "device.attributes.model == 'x'",
    "device.attributes['gpu.example.com/model'] == 'x'", "device.attributes == {}", "device.attributes['x'] == {'a': 1}",
    "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", "device.capacity['gpu.example.com'].memory > quantity('1Gi')",
    "device.capacity['gpu.example.com'].memory >= 40", "device.capacity['gpu.example.com'].memory.isGreaterThan('40Gi')",
    "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40 GB'))", "device.capacity['x'].y.sign() == 1", "device.capacity['x'].y",
    "device.capacity['x'].y.value.sign() == 1", "device.allowMultipleAllocations", "device.allowMultipleAllocations == true",
    "!device.allowMultipleAllocations", "device.allowMultipleAllocation", "has(device.allowMultipleAllocations)",
    f"cel.bind(a, {DOMAIN}, a.model == 'x' && a.other)", f"cel.bind(a, {DOMAIN}.model, a)", "cel.bind(a, 1, a)", "cel.bind(a, 1, a == b)",
    "cel.bind(a.b, 1, true)", "cel.bind(1, 1, true)", "cel.bind(a, cel.bind(b, 1, b + 1), a == 2)", "cel.bind(a, 1)", "cel.bind('a')",
    "cel.bind(x, [1, 2, 3], x.exists(y, cel.bind(z, y * 2, z == 4)))", "cel.block([1], cel.index(0) == 1)", "math.greatest(1, 2) == 2",
    "base64.encode(b'a') == 'YQ=='", "lists.range(3).size() == 3", "'a'.reverse() == 'a'", "[1, 2].reverse() == [2, 1]", "sets.contains([1], [1])",
    "ip('1.2.3.4').family() == 4", "ip('x').family() == 4", "isIP('x')", "url('http://x').getHost() == 'x'", "format.dns1123Label().validate('a').hasValue()",
    "semver('1.2.3').major() == 1", "quantity('1') == quantity('1000m')", "'%s'.format(['a']) == 'a'", "strings.quote('a') == '\"a\"'",
    "authorizer.path('/x').check('get').allowed()", "request.name == 'x'", "namespaceObject.metadata.name == 'x'", "variables.x",
    "duration('1h') > duration('1m')", "duration('x') > duration('1m')", "timestamp('x') > timestamp('y')", "1 == 'a'", "dyn(1) == 'a'", "1 + 'a' == 'b'",
    "{'a': 1}.a == 1", "{'a': 1}.b == 1", "[1][5] == 1", "1 / 0 == 1", "'a' < 'b'", "1 < 2.0", "device.driver.contains('gpu')", "device.driver.size() > 3",
    "device.driver.matches(device.driver)", "device.driver in ['a']", "device.driver == 1", "device.attributes['a']['b']['c'] == 1", "\"\\q\" == 'a'",
    "true // a comment", "true &&\n  true", "", " ", "null", "null == null", "[]", "{}", "'true'", "b'true' == b''", "true || 1", "if true", "device.`driver` == 'x'",
    wide(3), wide(4), wide(5), wide(6), wide(7),
    f"{DOMAIN}.all(a, {DOMAIN}.all(b, true))", f"{DOMAIN}.all(a, {DOMAIN}.all(b, {DOMAIN}.all(c, true)))",
    f"{DOMAIN}.all(a, {DOMAIN}.all(b, {DOMAIN}.all(c, {DOMAIN}.all(d, true))))",
    f"device.attributes.all(a, device.attributes[a].all(b, {DOMAIN}.all(c, {DOMAIN}.all(d, {DOMAIN}.all(e, true)))))",
    f"{DOMAIN}.all(a, {DOMAIN}.all(b, {DOMAIN}.all(c, a.matches(b) && b.matches(c))))", f"{DOMAIN}.all(a, {DOMAIN}.all(b, a.matches(b)))",
    f"{DOMAIN}.all(k, v, {DOMAIN}.all(l, w, {DOMAIN}.all(m, u, v == w && u == v)))",
    f"{DOMAIN}.map(a, a + a).map(b, b + b).map(c, c + c).map(d, d + d).all(e, e.matches(e))", f"{DOMAIN}.map(a, {DOMAIN}.map(b, {DOMAIN}.map(c, a + b + c))).size() == 1",
    f"cel.bind(a, {DOMAIN}, a.all(b, a.all(c, a.all(d, a.all(e, true)))))", f"{DOMAIN}.model.split('').all(a, {DOMAIN}.model.split('').all(b, a == b))",
    f"{DOMAIN}.model.split('').all(a, {DOMAIN}.model.split('').all(b, {DOMAIN}.model.split('').all(c, a == b && b == c)))",
    "device.driver.split('').all(a, device.driver.split('').all(b, device.driver.split('').all(c, a == b && b == c)))",
    "lists.range(100).all(a, true)", "lists.range(1000).all(a, lists.range(1000).all(b, true))", "lists.range(100000).all(a, true)",
    "[3, 1, 2].sort() == [1, 2, 3]", f"{DOMAIN}.map(x, x).sort().size() == 1", f"{DOMAIN}.map(x, x).distinct().size() == 1",
    "format.named('x').hasValue()", "semver('1.0.0').compareTo(semver('2.0.0')) < 0", "'" + "a" * 10236 + "' == 'b'"[:7], "true" + " " * 10236, "true" + " " * 10237,
    "'" + "ä" * 5112 + "' == ''", "'" + "ä" * 5117 + "' == ''",
)  # fmt: skip
