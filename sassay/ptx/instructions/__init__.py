"""The instruction table: one entry per syntax shape, in one module per chapter, loaded when an opcode of it is first met."""

from __future__ import annotations
