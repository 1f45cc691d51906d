"""The language CEL as kube-apiserver offers it to admission policies, independent of policies and Kubernetes objects.

    environment = Environment(variables={"object": DYN})
    program = compiled_engine().compile("object.spec.replicas <= 5", environment, expects=(BOOL,))
    program.evaluate({"object": {"spec": {"replicas": 3}}}, CostMeter())    # True

Text becomes a tree (syntax). The tree gets types (check), and becomes one Python function (compile). The function works
on plain JSON, and counts its cost (cost) as the API server does. library/ has the functions.
"""

from webhook.cel.cost import CostMeter
from webhook.cel.environment import Environment
from webhook.cel.program import Engine, Program, compiled_engine

__all__ = ["CostMeter", "Engine", "Environment", "Program", "celpy_engine", "compiled_engine"]


def celpy_engine() -> Engine:
    """Return the engine of cel-python, for comparison: slow, without most functions of Kubernetes."""
    from webhook.cel.reference_engine import celpy_engine as engine

    return engine()
