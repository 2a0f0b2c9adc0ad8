"""Kernels written in PTX by hand: tables of branches, long carries and bit work, forms of halves, frames and functions."""

from __future__ import annotations

import numpy as np
from launches import F32, F64, I64, U32, U64, Launch, spec, words

MASK, WIDE = 0xFFFFFFFF, 2**64 - 1


@spec("ptx", "int", "switch", "indirect", "divergence", "loop")
def ptx_branch_table(rng: np.random.Generator) -> Launch:
    n = 100
    data = words(rng, n)
    data[0] = 3

    def walk(word: int) -> int:
        value, step = 0, 0
        while True:
            way, word, step = word & 3, word >> 2, step + 1
            if way == 0:
                value = (value + step) & MASK
                if word == 0 and step > 100:
                    raise AssertionError("a walk must end")
            elif way == 1:
                value = (value << 5 | value >> 27) & MASK ^ 0x55
            elif way == 2:
                value = (value * value + 3) & MASK
            if way == 3 or (way == 2 and step >= 12):
                return (value + step) & MASK

    data |= U32(3 << 30)  # every word has an end
    want = np.array([walk(int(v)) for v in data], U32)
    return Launch((2, 1, 1), (64, 1, 1), [data, np.zeros(n, U32), U32(n)], {1: want})


def permuted(mode: str, a: int, b: int, c: int) -> int:
    octets = [(b << 32 | a) >> 8 * k & 255 for k in range(8)]
    n = c & 3
    order = {"b4e": [(n - k) % 8 for k in range(4)], "rc16": [2 * (n & 1) + (k & 1) for k in range(4)]}[mode]
    return sum(octets[o] << 8 * k for k, o in enumerate(order))


def chain(a: int, b: int) -> list[int]:
    """The eight 64-bit words that `ptx_wide_chain` stores for two 128-bit numbers."""
    s64 = lambda v: (v & WIDE ^ 1 << 63) - (1 << 63)  # noqa: E731
    al, ah, bl, bh = a & WIDE, a >> 64, b & WIDE, b >> 64
    total, less = (a + b) % 2**128, (a - b) % 2**128
    r2, r3, r4, r5 = al & MASK, al >> 32, bl & MASK, bl >> 32
    n = r4 & 63
    r10 = al >> min(n, 32) & MASK
    r11 = al << (n & 31) >> 32 & MASK
    r12, r13 = permuted("b4e", r2, r3, r4), permuted("rc16", r2, r3, r5)
    r14 = 0
    for k in range(32):
        r14 |= (0xD2 >> ((r10 >> k & 1) * 4 + (r11 >> k & 1) * 2 + (r12 >> k & 1)) & 1) << k
    r14 ^= r13
    field = al >> 17 & (1 << 23) - 1
    field = field - (1 << 23) if field >> 22 else field
    inserted = bl & ~(0xFFF << 40) | (field & 0xFFF) << 40
    signed3 = r3 ^ MASK if r3 >> 31 else r3
    shift = 31 - (signed3.bit_length() - 1) if signed3 else MASK
    mixed = int(f"{inserted:064b}"[::-1], 2) ^ r14
    r18 = (((64 - bl.bit_length()) * 100 + al.bit_count()) & MASK) ^ shift
    p1 = s64(al) < s64(bl)
    higher = ah > bh
    flags = int(p1) | 2 * (higher or p1) | 4 * (not (not higher or p1))
    least = min(s64(abs(s64(ah)) & WIDE), s64(bh))
    return [total & WIDE, total >> 64, less & WIDE, less >> 64, al * bl >> 64, mixed, (r18 - 2**32 if r18 >> 31 else r18) & WIDE,
            (least * 8 + flags) & WIDE]  # fmt: skip


@spec("ptx", "int", "int64", "carry", "bits", "packed")
def ptx_wide_chain(rng: np.random.Generator) -> Launch:
    a, b = ([int.from_bytes(rng.bytes(16), "little") for _ in range(32)] for _ in range(2))
    a[0], b[0] = 2**128 - 1, 1
    a[1], b[1] = 5, 6
    words64 = lambda values: np.array([v >> 64 * k & WIDE for v in values for k in range(2)], U64)  # noqa: E731
    want = np.array([w for x, y in zip(a, b, strict=True) for w in chain(x, y)], U64)
    return Launch((1, 1, 1), (32, 1, 1), [words64(a), words64(b), np.zeros(256, U64)], {2: want})


class Halves(Launch):
    """Exact words but for NaNs of halves; ex2 and tanh of halves within three units of the last place and 2**-10.9 of the value."""

    def check(self, args: list) -> None:
        got, want = args[1].reshape(-1, 8), self.expected[1].reshape(-1, 8)
        for column in range(5):
            g, w = (np.ascontiguousarray(v[:, column]).view(np.uint16) for v in (got, want))
            nan = lambda v: v & 0x7FFF > 0x7C00  # noqa: E731
            np.testing.assert_array_equal(np.where(nan(g), 0x7FFF, g), np.where(nan(w), 0x7FFF, w), err_msg=f"word {column}")
        np.testing.assert_array_equal(got[:, 5:], want[:, 5:])
        np.testing.assert_allclose(args[2].view(np.float16).astype(F64), self.expected[2], rtol=2**-9.9, atol=2**-22)


@spec("ptx", "f16", "bf16", "f8", "packed", "convert", "mufu")
def ptx_half_forms(rng: np.random.Generator) -> Launch:
    n = 32
    a = (rng.standard_normal((n, 2)) * 2).astype(np.float16)
    b = (rng.standard_normal((n, 2)) * 2).astype(np.float16)
    a[0, 0], b[1, 1] = np.nan, np.nan
    a[2], b[2] = (0.5, -1.5), (2.5, -0.0)
    x, y = a.astype(F64), b.astype(F64)
    nan = np.isnan(x) | np.isnan(y)
    half = lambda v: np.ascontiguousarray(v.astype(np.float16)).view(U32).reshape(-1)  # noqa: E731
    saturated = np.where(nan, 0, (x * y + x).clip(0, 1))
    relu = np.where(nan, np.nan, np.maximum(x * y + y, 0))
    smaller = np.fmin(np.abs(x), np.abs(y))
    signs = np.where(np.signbit(a) ^ np.signbit(b), -1.0, 1.0)
    with np.errstate(invalid="ignore"):
        flag = np.where(x[:, 1] <= y[:, 0], MASK, 0) ^ (~(x[:, 0] <= y[:, 1])).astype(I64)
        low = np.where(np.isnan(x[:, 0]), 0, np.rint(x[:, 0])).astype(I64) & 0xFFFF
        high = np.where(np.isnan(x[:, 1]), 0, np.trunc(x[:, 1]).clip(0, 65535)).astype(I64)
    f3 = (x[:, 0] * y[:, 1] + 0.125).astype(F32)
    from spec_tensor import bf16, eight_bit, nearest

    codes = [np.where(np.isnan(v), 0x7F, nearest(np.nan_to_num(v.astype(F64)), eight_bit(4))) for v in (y[:, 1], f3)]
    last = codes[0].astype(I64) | codes[1].astype(I64) << 8 | bf16(f3).astype(I64) << 16
    larger = np.where(nan, np.nan, np.maximum(x, y))
    columns = [half(saturated), half(relu), half(larger), half(smaller * signs), half(x - y), flag, low | high << 16, last]
    with np.errstate(over="ignore"):
        soft = np.stack([np.exp2(x), np.tanh(y)], 1).reshape(-1)
    args = [np.concatenate([half(a)[:, None], half(b)[:, None]], 1).reshape(-1), np.zeros(8 * n, U32), np.zeros(2 * n, U32)]
    want = np.stack([np.asarray(c).astype(I64) & MASK for c in columns], 1).astype(U32)
    return Halves((1, 1, 1), (n, 1, 1), args, {1: want.reshape(-1), 2: soft})


@spec("ptx", "int", "int64", "local", "shared", "constant", "globals", "calls", "generic", "barrier", "divergence")
def ptx_local_frames(rng: np.random.Generator) -> Launch:
    data = words(rng, 64)
    frames, staged = [], []
    for v in map(int, data):
        chain = [v]
        for _ in range(3):
            chain.append((chain[-1] * 7 + 1) & MASK)
        frame = [*chain, v ^ MASK, chain[1], chain[3], chain[2]]
        frames.append(frame)
        staged.append(frame[7 - (v & 7)])
    out = []
    for t, v in enumerate(map(int, data)):
        total, mask, k = 0, v & 255, 0
        while True:
            if mask & 1:
                total = (total * 3 + frames[t][k]) & MASK
            k, mask = k + 1, mask >> 1
            if not mask:
                break
        weight = (3, 5, 0x100000007, 11)[v & 3]
        mixed = (total * 31 + (staged[t ^ 1] >> 16)) & MASK
        out.append((mixed * weight + weight) & WIDE)
    return Launch((1, 1, 1), (64, 1, 1), [data, np.zeros(64, U64)], {1: np.array(out, U64)})
