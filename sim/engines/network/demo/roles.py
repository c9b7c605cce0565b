"""The role of each operator in an encoder's layers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from hw.network.graph.network import Attention, Convolution, LayerNorm, Network, Operator, Table, TokenMean


class Role(enum.StrEnum):
    """Roles, by their titles."""

    EMBEDDING = "embedding"
    QUERIES = "queries, keys, values"
    ATTENTION = "attention"
    JOINING = "product behind attention"
    WIDENING = "feed-forward, first product"
    NARROWING = "feed-forward, second product"
    NORM = "LayerNorm"
    MEAN = "mean of tokens"


#: Roles of kinds of operators that have no other one; a table is GELU's.
_ROLES: Mapping[type[Operator], Role] = {
    Attention: Role.ATTENTION,
    LayerNorm: Role.NORM,
    TokenMean: Role.MEAN,
    Table: Role.WIDENING,
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """Where an operator belongs."""

    role: Role
    layer: int  #: From 1 on; 0 before the first one.


def parts_of(network: Network) -> Mapping[str, Part]:
    """Return the part of each operator, by its name.

    A layer begins with its queries, keys and values, and ends with a LayerNorm.
    """
    graph = _Graph(network)
    found: dict[str, Part] = {}
    attended = 0
    for operator in network.operators:
        role = graph.role(operator)
        attended += role is Role.ATTENTION
        found[operator.name] = Part(role=role, layer=attended + (role is Role.QUERIES))
    return found


class _Graph:
    def __init__(self, network: Network) -> None:
        self._makers = {operator.output: operator for operator in network.operators}
        self._users: dict[str, list[Operator]] = {}
        for operator in network.operators:
            for name in operator.inputs:
                self._users.setdefault(name, []).append(operator)

    def role(self, operator: Operator) -> Role:
        """Return an operator's role."""
        if type(operator) in _ROLES:
            return _ROLES[type(operator)]
        before = [self._makers[name] for name in operator.inputs if name in self._makers]
        if not isinstance(operator, Convolution):
            # A sum joins the product before it, or rows of tables.
            products = [each for each in before if isinstance(each, Convolution)]
            return self.role(products[0]) if products else Role.EMBEDDING
        behind = self._users.get(operator.output, [])
        if any(isinstance(each, Attention) for each in behind):
            return Role.QUERIES
        if any(isinstance(each, Attention) for each in before):
            return Role.JOINING
        return Role.WIDENING if any(isinstance(each, Table) for each in behind) else Role.NARROWING
