"""Checksums, hashes, ciphers, random numbers, big integers, integer arithmetic in all widths."""

from __future__ import annotations

import hashlib
import itertools
import math
import zlib

import numpy as np
from launches import F32, F64, I32, I64, U32, U64, Launch, ints, spec, words

MASK = 0xFFFFFFFF


def lines(rng: np.random.Generator, n: int, longest: int) -> tuple[np.ndarray, np.ndarray, list[bytes]]:
    """Byte strings laid end to end, where each starts (and the last ends), and the strings."""
    start = np.cumsum([0, *rng.integers(0, longest, n)]).astype(I32)
    data = rng.integers(0, 256, int(start[-1])).astype(np.uint8)
    return data, start, [data[a:b].tobytes() for a, b in itertools.pairwise(start)]


@spec("int", "bytes", "shared", "barrier", "divergence", "loop")
def crc32(rng: np.random.Generator) -> Launch:
    data, start, texts = lines(rng, 90, 40)
    args = [data, start, np.zeros(90, U32), I32(90)]
    return Launch((2, 1, 1), (64, 1, 1), args, {2: np.array([zlib.crc32(t) for t in texts], U32)})


@spec("int", "constant", "vector", "loop")
def sha256(rng: np.random.Generator) -> Launch:
    n = 40
    data = rng.integers(0, 256, 64 * n).astype(np.uint8)
    want = b"".join(hashlib.sha256(data[64 * i : 64 * i + 64].tobytes()).digest() for i in range(n))
    return Launch((2, 1, 1), (32, 1, 1), [data.view(U32), np.zeros(8 * n, U32), I32(n)], {1: np.frombuffer(want, U32)})


def quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[p] = (x[p] + x[q]) & MASK
        v = x[r] ^ x[p]
        x[r] = (v << turn | v >> (32 - turn)) & MASK


@spec("int", "vector", "loop")
def chacha20(rng: np.random.Generator) -> Launch:
    key, nonce, counter, blocks = words(rng, 8), words(rng, 3), 7, 40
    out: list[int] = []
    for k in range(blocks):
        s = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *map(int, key), counter + k, *map(int, nonce)]
        x = list(s)
        for _ in range(10):
            for i in range(4):
                quarter(x, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        out += [(a + b) & MASK for a, b in zip(x, s, strict=True)]
    args = [key, nonce, np.zeros(16 * blocks, U32), U32(counter), I32(blocks)]
    return Launch((2, 1, 1), (32, 1, 1), args, {2: np.array(out, U32)})


@spec("int", "f32", "convert", "vector", "atomics", "redux", "loop")
def philox(rng: np.random.Generator) -> Launch:
    n, key = 128, words(rng, 2)
    rows = []
    for i in range(n):
        c, k = [i, 0, 0x1234, i ^ MASK], [int(key[0]), int(key[1])]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ k[0], q & MASK, (p >> 32) ^ c[3] ^ k[1], p & MASK]
            k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
        rows.append(c)
    raw = np.array(rows, U32)
    u = (raw >> U32(8)).astype(F64) / 2**24
    square = lambda v: (v * v).astype(F32).astype(F64)  # noqa: E731
    radius = (u[:, 0::2] ** 2 + square(u[:, 1::2])).astype(F32)
    args = [np.zeros(4 * n, U32), np.zeros(4 * n, F32), np.zeros(1, U32), key.tobytes()]
    return Launch((2, 1, 1), (64, 1, 1), args, {0: raw.reshape(-1), 1: u.astype(F32).reshape(-1), 2: np.array([(radius <= 1).sum()], U32)})


@spec("int64", "int128", "divergence", "loop")
def pcg64(rng: np.random.Generator) -> Launch:
    n, draws = 40, 3
    jump = rng.integers(0, 2**40, n, dtype=U64)
    high, low = (int(v) for v in rng.integers(0, 2**63, 2, dtype=U64))
    m, c, full = 2549297995355413924 << 64 | 4865540595714422341, 6364136223846793005 << 64 | 1442695040888963407, 1 << 128
    out = []
    for steps in (int(j) for j in jump):
        power = pow(m, steps, full * (m - 1))  # the sum of a geometric series by one division
        state = (power * (high << 64 | low) + (power - 1) // (m - 1) * c) % full
        for _ in range(draws):
            state = (state * m + c) % full
            folded, turn = (state >> 64 ^ state) & (2**64 - 1), state >> 122
            out.append((folded >> turn | folded << (-turn & 63)) & (2**64 - 1))
    args = [np.zeros(n * draws, U64), jump, U64(high), U64(low), I32(n), I32(draws)]
    return Launch((2, 1, 1), (32, 1, 1), args, {0: np.array(out, U64)})


def murmur(data: bytes, seed: int) -> int:
    turn = lambda x, r: (x << r | x >> (32 - r)) & MASK  # noqa: E731
    mix = lambda k: turn(k * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK  # noqa: E731
    h, whole = seed, len(data) // 4 * 4
    for i in range(0, whole, 4):
        h = (turn(h ^ mix(int.from_bytes(data[i : i + 4], "little")), 13) * 5 + 0xE6546B64) & MASK
    if data[whole:]:
        h ^= mix(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


@spec("int", "bytes", "switch", "divergence", "loop")
def murmur3(rng: np.random.Generator) -> Launch:
    data, start, texts = lines(rng, 100, 30)
    args = [data, start, np.zeros(100, U32), U32(0x9747B28C), I32(100)]
    return Launch((2, 1, 1), (64, 1, 1), args, {2: np.array([murmur(t, 0x9747B28C) for t in texts], U32)})


def field_times(a: int, b: int) -> int:
    r = 0
    for k in range(8):
        r ^= (a << k) * (b >> k & 1)
    for k in range(14, 7, -1):
        r ^= (0x11B << (k - 8)) * (r >> k & 1)
    return r


def aes_tables() -> list[int]:
    box = []
    for i in range(256):
        inverse = next((j for j in range(256) if field_times(i, j) == 1), 0)
        bits = [inverse >> k & 1 for k in range(8)]
        box.append(sum((bits[k] ^ bits[(k + 4) % 8] ^ bits[(k + 5) % 8] ^ bits[(k + 6) % 8] ^ bits[(k + 7) % 8]) << k for k in range(8)) ^ 0x63)
    return box


@spec("int", "bytes", "shared", "local", "divergence", "loop")
def aes_block(rng: np.random.Generator) -> Launch:
    n, box = 24, aes_tables()
    key = rng.integers(0, 256, 16).tolist()
    schedule, constant = [key[4 * i : 4 * i + 4] for i in range(4)], 1
    for i in range(4, 44):
        word = list(schedule[-1])
        if i % 4 == 0:
            word = [box[b] for b in word[1:] + word[:1]]
            word[0], constant = word[0] ^ constant, field_times(constant, 2)
        schedule.append([a ^ b for a, b in zip(schedule[i - 4], word, strict=True)])
    keys = np.array(schedule, np.uint8).reshape(11, 4, 4)
    data = rng.integers(0, 256, (n, 4, 4)).astype(np.uint8)
    double, sbox = np.array([field_times(i, 2) for i in range(256)], np.uint8), np.array(box, np.uint8)
    state = data ^ keys[0]
    for r in range(1, 11):
        state = sbox[np.stack([np.roll(state[:, :, k], -k, 1) for k in range(4)], 2)]
        if r < 10:
            around = np.roll(state, -1, 2)
            state = double[state] ^ double[around] ^ around ^ np.roll(state, -2, 2) ^ np.roll(state, -3, 2)
        state = state ^ keys[r]
    args = [data.reshape(-1), keys.reshape(-1), np.zeros(16 * n, np.uint8), I32(n)]
    return Launch((1, 1, 1), (32, 1, 1), args, {2: state.reshape(-1)})


def limbs(values: list[int], count: int) -> np.ndarray:
    """Numbers as `count` 32-bit limbs each, low first."""
    return np.array([v >> 32 * k & MASK for v in values for k in range(count)], U32)


def big(rng: np.random.Generator, bits: int) -> int:
    return int.from_bytes(rng.bytes(bits // 8), "little")


@spec("int", "carry", "bigint")
def montgomery(rng: np.random.Generator) -> Launch:
    n, p = 40, 2**255 - 19
    a, b = ([0, p - 1, *(big(rng, 256) % p for _ in range(n - 2))] for _ in range(2))
    back = pow(2, -256, p)
    want = limbs([x * y * back % p for x, y in zip(a, b, strict=True)], 8)
    args = [limbs(a, 8), limbs(b, 8), limbs([p], 8), np.zeros(8 * n, U32), U32(-pow(p, -1, 2**32) % 2**32), I32(n)]
    return Launch((2, 1, 1), (32, 1, 1), args, {3: want})


@spec("int64", "int128", "division", "divergence", "loop", "bigint")
def modular_power(rng: np.random.Generator) -> Launch:
    numbers = [2**61 - 1, 3215031751, 9, 18446744073709551557, *(int(v) | 1 for v in rng.integers(11, 2**63, 8, dtype=U64))]
    power, prime = [], []
    for m in numbers:
        s = ((m - 1) & -(m - 1)).bit_length() - 1
        d, last, ok = (m - 1) >> s, 0, True
        for base in (2, 3, 5, 7):
            last = pow(base, d, m)
            chain = {pow(base, d << k, m) for k in range(s)}
            if last != 1 and m - 1 not in chain:
                ok = False
                break
        power.append(last)
        prime.append(ok)
    args = [np.array(numbers, U64), np.zeros(len(numbers), U64), np.zeros(len(numbers), I32), I32(len(numbers))]
    return Launch((1, 1, 1), (32, 1, 1), args, {1: np.array(power, U64), 2: np.array(prime, I32)})


@spec("int64", "int128", "shuffle", "shared", "carry", "bigint")
def big_multiply(rng: np.random.Generator) -> Launch:
    n = 4
    a, b = [2**512 - 1, *(big(rng, 512) for _ in range(n - 1))], [2**512 - 1, *(big(rng, 512) for _ in range(n - 1))]
    args = [limbs(a, 16), limbs(b, 16), np.zeros(32 * n, U32)]
    return Launch((n, 1, 1), (32, 1, 1), args, {2: limbs([x * y for x, y in zip(a, b, strict=True)], 32)})


def jacobi_symbol(a: int, n: int) -> int:
    """By the factors of n."""
    out = 1
    d = 3
    while n > 1:
        if d * d > n:
            d = n
        while n % d == 0:
            n //= d
            residue = pow(a, (d - 1) // 2, d)
            out *= 0 if a % d == 0 else 1 if residue == 1 else -1
        d += 2
    return out


@spec("int64", "division", "divergence", "loop", "bits")
def binary_gcd(rng: np.random.Generator) -> Launch:
    n = 60
    common = [int(v) for v in rng.integers(1, 5000, n)]
    a = [int(v) * c for v, c in zip(rng.integers(1, 2**30, n), common, strict=True)]
    b = [int(v) * c for v, c in zip(rng.integers(1, 2**18, n), common, strict=True)]
    a[0], b[1], a[2] = 0, 0, 2**63
    args = [np.array(a, U64), np.array(b, U64), np.zeros(n, U64), np.zeros(n, I32), I32(n)]
    symbols = [jacobi_symbol(x, y | 1) for x, y in zip(a, b, strict=True)]
    return Launch((2, 1, 1), (32, 1, 1), args, {2: np.array([math.gcd(x, y) for x, y in zip(a, b, strict=True)], U64), 3: np.array(symbols, I32)})


@spec("int128", "division", "calls", "divergence")
def int128_divide(rng: np.random.Generator) -> Launch:
    n, full = 40, 1 << 128
    a = [big(rng, 128) >> int(rng.integers(0, 100)) for _ in range(n)]
    b = [max(big(rng, 128) >> int(rng.integers(0, 120)), 1) for _ in range(n)]
    a[0], b[0] = full - 1, 3
    signed = lambda v: v - full if v >> 127 else v  # noqa: E731
    rows: list[list[int]] = [[] for _ in range(5)]
    for x, y in zip(a, b, strict=True):
        q = abs(signed(x)) // abs(signed(y))
        values = [x // y, x % y, q if (signed(x) < 0) == (signed(y) < 0) else -q, x >> (y & 127), signed(x) >> (y >> 64 & 127)]
        for row, v in zip(rows, values, strict=True):
            row.append(v % full)
    words64 = lambda values: np.array([v >> 64 * k & (2**64 - 1) for v in values for k in range(2)], U64)  # noqa: E731
    args = [words64(a), words64(b), np.zeros(10 * n, U64), I32(n)]
    return Launch((2, 1, 1), (32, 1, 1), args, {2: words64([v for row in rows for v in row])})


@spec("int", "packed", "saturate", "int16")
def saturating(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = ints(rng, n), ints(rng, n)
    a[:4], b[:4] = (2**31 - 1, -(2**31), -(2**31), 0x7FFFFF), (1, -1, -(2**31), 0x800000)
    clamp = lambda v: max(-(2**31), min(2**31 - 1, v))  # noqa: E731
    low24 = lambda v: (v + 2**23) % 2**24 - 2**23  # noqa: E731
    rows: list[list[int]] = [[] for _ in range(8)]
    for x, y in zip(map(int, a), map(int, b), strict=True):
        halves = [(x >> 16 * k & 0xFFFF ^ 0x8000) - 0x8000 for k in range(2)]
        octets = [y >> 8 * k & 0xFF for k in (2, 3)]
        values = [
            clamp(x + y), clamp(x - y), clamp((x * y >> 32) + x), low24(x) * low24(y), ((x & 0xFFFFFF) * (y & 0xFFFFFF) >> 16) + y, abs(x - y) + 7,
            sum(h * o for h, o in zip(halves, octets, strict=True)) + 11, (x & 0xFFFF) * (y & 0xFFFF) >> 16,
        ]  # fmt: skip
        for row, v in zip(rows, values, strict=True):
            row.append(v & MASK)
    return Launch((2, 1, 1), (32, 1, 1), [a, b, np.zeros(8 * n, I32), I32(n)], {2: np.array(rows, U32).view(I32).reshape(-1)})


@spec("int", "packed", "bytes", "saturate")
def simd_bytes(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = words(rng, n), words(rng, n)
    ua, ub = (v.view(np.uint8).astype(I64) for v in (a, b))
    sa, sb = (v.view(np.int8).astype(I64) for v in (a, b))
    ha, hb = (v.view(np.uint16).astype(I64) for v in (a, b))
    pack = lambda v: (v & 0xFF).astype(np.uint8).view(U32)  # noqa: E731
    pack16 = lambda v: (v & 0xFFFF).astype(np.uint16).view(U32)  # noqa: E731
    ia, ib = a.view(I32).astype(I64), b.view(I32).astype(I64)
    wrapped = ((ia + ib + 2**31) % 2**32) - 2**31
    pixels = ua.reshape(n, 4)
    rows = [
        pack(abs(ua - ub)), pack((ua + ub).clip(0, 255)), pack((sa - sb).clip(-128, 127)), pack((ua + ub + 1) >> 1), pack(np.where(ua > ub, 255, 0)),
        pack(np.maximum(sa, sb)), abs(ua - ub).reshape(n, 4).sum(1), pack16(ha + hb), pack16(np.minimum(ha, hb)),
        np.maximum(np.maximum(wrapped, 5), 0), np.maximum(np.maximum(ia, ib), 77), (pixels[:, :3] * (77, 150, 29)).sum(1) + 128 >> 8,
    ]  # fmt: skip
    want = np.concatenate([(np.asarray(r).astype(I64) & MASK).astype(U32) for r in rows])
    return Launch((2, 1, 1), (32, 1, 1), [a, b, np.zeros(12 * n, U32), I32(n)], {2: want})


def machine(code: list[int], value: int) -> tuple[int, int]:
    """The stack machine of the kernel `bytecode`: what is on top at the end, and the steps taken."""
    s8 = lambda v: v - 256 if v > 127 else v  # noqa: E731
    wrap = lambda v: (v + 2**31) % 2**32 - 2**31  # noqa: E731
    stack, pc, count = [value], 0, 0
    while count < 500:
        op, pc, count = code[pc], pc + 1, count + 1
        if op == 0:
            break
        if op == 1:
            stack.append(s8(code[pc]))
            pc += 1
        elif op in (2, 3, 4):
            y, x = stack.pop(), stack.pop()
            stack.append(wrap({2: x + y, 3: x * y, 4: x - y}[op]))
        elif op == 5:
            stack.append(stack[-1])
        elif op == 6:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif op in (7, 10):
            take = op == 10 or stack.pop() != 0
            pc += 1 + (s8(code[pc]) if take else 0)
        elif op == 8:
            stack[-1] &= 1
        elif op == 9:
            stack[-1] >>= 1
        elif op == 11:
            stack.append(stack[-2])
        else:
            stack[-1] = ~stack[-1]
    return stack[-1], count


@spec("int", "switch", "local", "divergence", "loop")
def bytecode(rng: np.random.Generator) -> Launch:
    n = 50
    # acc = 1; while x > 1 (x >> 1 is not zero): acc = acc * 3 + (x & 1); x >>= 1; leaves ~acc - 5
    code = [1, 1, 11, 9, 7, 2, 10, 16, 1, 3, 3, 11, 8, 2, 6, 9, 6, 11, 9, 7, -13 & 255, 10, 1, 0, 12, 1, 5, 4, 0]
    data = ints(rng, n, 1, 100000)
    data[0] = -7
    result = [machine(code, int(v)) for v in data]
    args = [np.array(code, np.uint8), data, np.zeros(n, I32), np.zeros(n, I32), I32(n)]
    return Launch((2, 1, 1), (32, 1, 1), args, {2: np.array([r[0] for r in result], I32), 3: np.array([r[1] for r in result], I32)})


@spec("int", "int64", "f32", "calls", "local", "struct")
def struct_params(rng: np.random.Generator) -> Launch:
    layout = np.dtype({"names": ["weight", "flags", "shift", "values", "wide"], "formats": ["<i2", "u1", "i1", ("<i4", 5), "<i8"],
                       "offsets": [0, 2, 3, 4, 24], "itemsize": 32})  # fmt: skip
    item = np.zeros((), layout)
    item["weight"], item["flags"], item["shift"], item["wide"] = -321, 200, -77, -(2**40) + 5
    item["values"] = ints(rng, 5, -10000, 10000)
    k = np.arange(32) + 250
    v = item["values"].astype(I64)
    a = v[k % 5] * -321
    b = int(item["wide"]) + v[(k + 1) % 5] * 200
    c = F32(-38.5) + k.astype(F32)
    args = [item.tobytes(), np.zeros(32, I32), np.zeros(32, I64), np.zeros(32, F32), np.uint8(250)]
    return Launch((1, 1, 1), (32, 1, 1), args, {1: a.astype(I32), 2: b, 3: c})


@spec("int", "int16", "int64", "f32", "f64", "vector")
def vector_types(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = rng.integers(-128, 128, (n, 4)).astype(np.int8), rng.integers(-(2**15), 2**15, (n, 4)).astype(np.int16)
    c, d, e = ints(rng, 2 * n).reshape(n, 2), rng.standard_normal((n, 4)).astype(F32), rng.standard_normal((n, 2)) * 1e6
    f = rng.integers(0, 256, (n, 2)).astype(np.uint8)
    p, q, r, t, u = a.astype(I64), b.astype(I64), c.astype(I64), np.trunc(e).astype(I64), f.astype(I64)
    wrap32 = lambda v: (v & MASK).astype(U32).view(I32)  # noqa: E731
    o16 = np.stack([p[:, 0] + q[:, 1], p[:, 3] - q[:, 2]], 1).astype(np.int16)
    o32 = wrap32(np.stack([r[:, 0] + p[:, 1], r[:, 1] - p[:, 2], q[:, 0] * u[:, 0], q[:, 3] * u[:, 1]], 1))
    o64 = np.stack([t[:, 0] * r[:, 0], t[:, 1] - r[:, 1]], 1)
    of = np.stack([d[:, 0] + d[:, 3], d[:, 1] - d[:, 2]], 1)
    flat = [v.reshape(-1) for v in (a, b, c, d, e, f)]
    args = [*flat, np.zeros(2 * n, np.int16), np.zeros(4 * n, I32), np.zeros(2 * n, I64), np.zeros(2 * n, F32)]
    return Launch((2, 1, 1), (32, 1, 1), args, {6: o16.reshape(-1), 7: o32.reshape(-1), 8: o64.reshape(-1), 9: of.reshape(-1)})
