"""A fact that fails."""

from webhook.cel.types import BOOL
from webhook.facts.fact import declare_structure
from webhook.facts.subject import Fact

BROKEN = declare_structure("Broken", whole=(BOOL, "whether it is whole"))


def compute(subject):
    """Raise an error in every review."""
    raise KeyError(subject.object["metadata"]["labels"]["secret"])


FACTS = (
    Fact(
        name="broken",
        about="A value that is never known.",
        examples=("broken.whole",),
        type=BROKEN.type,
        structures=(BROKEN,),
        compute=compute,
    ),
)
