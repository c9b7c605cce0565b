"""Times of the controls of touches."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TouchTimes:
    """Constants of acceptance, issue and admission, in cycles."""

    #: ``position_cycles``, ``touch_cycles``: deadlines: from acceptance to issue, and from issue to
    #: admission. They are those of HBM, and the latency of all other parts on the path.
    position_cycles: int
    touch_cycles: int
    #: ``idle_position_cycles``, ``idle_touch_cycles``: the same for an operation that is alone, at most.
    idle_position_cycles: int
    idle_touch_cycles: int
    rest_cycles: int  #: From the last admission to the acceptance of an operation that is alone, at least.
    forward_cycles: int  #: From a page's admission to its next one, at least.
