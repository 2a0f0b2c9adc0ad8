"""How long operations take: classes, distances with sources, and what needs a scoreboard."""

from sassay.isa.timing.model import CHIPS, SB_VISIBLE, TimingClass, TimingModel, model

__all__ = ["CHIPS", "SB_VISIBLE", "TimingClass", "TimingModel", "model"]
