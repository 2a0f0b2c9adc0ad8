"""Damaged cubins and texts, for tests and benchmarks of how bad input is met."""

from __future__ import annotations

import random
import re


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """One of: flipped bits, random bytes, a word of extreme value, a cut, a doubled or dropped range."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(out)) if rng.random() < 0.5 else rng.randrange(min(len(out), 0x400))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x80", b"\xff\xff\xff\x7f"))
        elif kind == 2:
            out[at : at + 8] = rng.randbytes(8)
        elif kind == 3:
            del out[at:]
        elif kind == 4:
            del out[at : at + rng.randrange(1, 64)]
        else:
            out[at:at] = out[at : at + rng.randrange(1, 64)]
        if not out:
            break
    return bytes(out)


def mutate_text(text: str, rng: random.Random) -> str:
    """Up to three lines dropped, doubled, swapped, cut, or with characters or numbers changed."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(lines))
        line = lines[at]
        kind = rng.randrange(7)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, rng.choice(lines))
        elif kind == 2 and line:
            cut = rng.randrange(len(line))
            lines[at] = line[:cut] + rng.choice(".,:[]()R0xP!@;\"-+ é\\`<>/") + line[cut + rng.randrange(2) :]
        elif kind == 3:
            lines[at] = re.sub(r"\d+", lambda m: rng.choice((m[0], "0", "4294967296", "-1", "99999999999999999999")), line)
        elif kind == 4:
            words = line.split(" ")
            rng.shuffle(words)
            lines[at] = " ".join(words)
        elif kind == 5:
            lines[at] = line[: rng.randrange(len(line) + 1)]
        else:
            lines[at], other = rng.choice(lines), line
            lines[rng.randrange(len(lines))] = other
        if not lines:
            lines = [""]
    return "\n".join(lines)
