"""The greatest possible costs of policies."""

import pytest

from webhook.policy.load import Options, load_policy_set
from webhook.policy.worst_case import REQUEST_SIZE, WorstCaseCost, worst_case_cost
from webhook.workloads import table

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: p}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]
  {conditions}
  variables: [{{name: names, expression: "{variable}"}}]
  validations: [{{expression: "{expression}"}}]
"""


def found(tmp_path, expression, *, variable="1", conditions=""):
    text = POLICY.format(expression=expression, variable=variable, conditions=conditions)
    (tmp_path / "p.yaml").write_text(text)
    return worst_case_cost(load_policy_set((tmp_path,), Options(table=table.load_table())).policies[0])


def test_a_policy_without_loops_has_a_bound(tmp_path):
    worst = found(tmp_path, "object.spec.replicas > 5")
    assert worst == WorstCaseCost(4, 4, REQUEST_SIZE)
    assert worst.is_within_limits


@pytest.mark.parametrize(
    "expression, within",
    [
        ("object.spec.all(x, x.a == 1)", 1_000_000 // 6 - 1),
        ("object.spec.all(x, object.spec.all(y, x.a != y.a))", None),
    ],
)
def test_a_loop_has_a_bound_only_with_sizes(tmp_path, expression, within):
    worst = found(tmp_path, expression)
    assert worst.most is None
    assert worst.request is None or worst.request > 1_000_000
    assert worst.within is not None
    assert worst.within < REQUEST_SIZE
    if within is not None:
        assert abs(worst.within - within) < 0.2 * within
    assert not worst.is_within_limits


def test_some_costs_are_unbounded_despite_sizes(tmp_path):
    worst = found(tmp_path, "lists.range(int(object.count)).all(i, i >= 0)")
    assert worst == WorstCaseCost(None, None, None)


def test_variables_and_conditions_are_counted(tmp_path):
    alone = found(tmp_path, "variables.names == 1")
    loop = found(tmp_path, "variables.names == 1", variable="object.a.filter(x, x.b).size()")
    condition = "matchConditions: [{name: c, expression: 'object.a.all(x, object.a.all(y, x.a == y.a))'}]"
    asked = found(tmp_path, "variables.names == 1", conditions=condition)
    assert alone.is_within_limits
    assert loop.within is not None
    assert loop.within > asked.within > 100
