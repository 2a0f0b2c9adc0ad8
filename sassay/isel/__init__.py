"""PTX to SASS over virtual registers: SSA construction, clean-ups, selection. See `select`."""

from sassay.isel.build import Options
from sassay.isel.select import select

__all__ = ["Options", "select"]
