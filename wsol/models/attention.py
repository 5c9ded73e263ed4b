"""The attentions of the `gpca` package, known to configs by their names there."""

from __future__ import annotations

from gpca import GPCA, SE, SRP, Constant, Identity, available_attentions
from wsol.registry import ATTENTIONS

SUMMARIES = available_attentions()

for _name, _attention in {
    "identity": Identity,
    "constant": Constant,
    "se": SE,
    "srp": SRP,
    "gpca": GPCA,
}.items():
    ATTENTIONS.register(_name, SUMMARIES[_name])(_attention)
