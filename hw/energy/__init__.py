"""Energy of launches: activity from predictions or counters, times coefficients with sources and ranges."""

from hw.energy.activity import Activity, MemoryActivity
from hw.energy.coefficients import Coefficients, load_coefficients
from hw.energy.model import Energy, energy
from hw.energy.span import Span

__all__ = ["Activity", "Coefficients", "Energy", "MemoryActivity", "Span", "energy", "load_coefficients"]
