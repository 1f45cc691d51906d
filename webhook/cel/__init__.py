"""The language CEL as kube-apiserver offers it to admission policies. This package is independent of policies and of
Kubernetes objects.

    environment = Environment(variables={"object": DYN})
    program = compiled_engine().compile("object.spec.replicas <= 5", environment, expects=(BOOL,))
    program.evaluate({"object": {"spec": {"replicas": 3}}}, CostMeter())    # True

Text becomes a tree (lexer, parser), the tree gets types (checker), and then becomes one Python function (compiler) that
works on plain JSON and counts its cost (cost) as the API server does. Functions come from library/.
"""

from webhook.cel.cost import CostMeter
from webhook.cel.environment import Environment
from webhook.cel.program import Engine, Program, compiled_engine

__all__ = ["CostMeter", "Engine", "Environment", "Program", "celpy_engine", "compiled_engine"]


def celpy_engine() -> Engine:
    """Return the engine that interprets expressions with cel-python, for comparison. It is slow, and lacks most of
    Kubernetes' functions.
    """
    from webhook.cel.reference_engine import celpy_engine as engine

    return engine()
