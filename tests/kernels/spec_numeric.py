"""Floating point: iterations with known rounding, transforms, linear algebra, library functions, all rounding modes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from launches import F32, F64, I32, U32, Launch, floats, fma32, ints, spec


def rounded(x: Fraction, mode: str, digits: int, lowest: int) -> float:
    """A number (not zero) at `digits` significant bits, the least bit's exponent not below `lowest`; overflow is not looked at."""
    exponent = (abs(x.numerator).bit_length() - x.denominator.bit_length()) - digits
    while abs(x) >= Fraction(2) ** (exponent + digits):
        exponent += 1
    while abs(x) < Fraction(2) ** (exponent + digits - 1):
        exponent -= 1
    scale = Fraction(2) ** max(exponent, lowest)
    q = x / scale
    whole = {"n": round, "z": math.trunc, "u": math.ceil, "d": math.floor}[mode](q)
    return math.copysign(float(whole * scale), x)


def each32(mode: str, f: Callable[..., Fraction], *arrays: np.ndarray) -> np.ndarray:
    return np.array([rounded(f(*(Fraction(float(v)) for v in row)), mode, 24, -149) for row in zip(*arrays, strict=True)], F32)


def each64(mode: str, f: Callable[..., Fraction], *arrays: np.ndarray) -> np.ndarray:
    return np.array([rounded(f(*(Fraction(float(v)) for v in row)), mode, 53, -1074) for row in zip(*arrays, strict=True)], F64)


def root(x: Fraction, bits: int = 200) -> Fraction:
    """A square root, close enough to round from: the exact one where there is one, else between two neighbours of 2**-`bits`."""
    scaled = x * 4**bits
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(whole, 2**bits)
    return exact if exact * exact == x else exact + Fraction(1, 2 ** (bits + 1))


@spec("f32", "divergence", "loop")
def mandelbrot(rng: np.random.Generator) -> Launch:
    w, h, limit, x0, y0, step = 40, 12, 60, F32(-2.2), F32(-1.1), F32(0.078125)
    cx = np.tile(fma32(np.arange(w).astype(F32), np.full(w, step), np.full(w, x0)), (h, 1))
    cy = np.tile(fma32(np.arange(h).astype(F32), np.full(h, step), np.full(h, y0))[:, None], (1, w))
    x, y, n = np.zeros((h, w), F32), np.zeros((h, w), F32), np.zeros((h, w), I32)
    for _ in range(limit):
        xx, yy = x * x, y * y
        going = ~(xx + yy > 4)
        y = np.where(going, fma32(x + x, y, cy), y)
        x = np.where(going, (xx - yy) + cx, x)
        n += going
        x, y = np.where(going, x, F32(9)), np.where(going, y, F32(9))
    args = [np.zeros(w * h, I32), I32(w), I32(h), x0, y0, step, I32(limit)]
    return Launch((2, 2, 1), (32, 8, 1), args, {0: n.reshape(-1)})


@spec("f32", "shared", "barrier", "mufu", "vector", "loop")
def nbody(rng: np.random.Generator) -> Launch:
    n = 100
    body = rng.standard_normal((n, 4)).astype(F32)
    p = body.astype(F64)
    d = p[None, :, :3] - p[:, None, :3]
    r = 1 / np.sqrt((d**2).sum(2) + 0.01)
    want = ((p[None, :, 3] * r**3)[..., None] * d).sum(1)
    args = [body.reshape(-1), np.zeros(3 * n, F32), I32(n), F32(0.01)]
    return Launch((2, 1, 1), (64, 1, 1), args, {1: want.astype(F32).reshape(-1)}, rtol=2e-4, atol=2e-3)


@spec("f32", "shared", "barrier", "bits", "loop")
def fft(rng: np.random.Generator) -> Launch:
    x = rng.standard_normal((2, 256, 2)).astype(F32)
    want = np.fft.fft(x[..., 0] + 1j * x[..., 1].astype(F64), axis=1)
    out = np.stack([want.real, want.imag], 2).astype(F32)
    return Launch((2, 1, 1), (128, 1, 1), [x.reshape(-1), np.zeros(1024, F32)], {1: out.reshape(-1)}, rtol=1e-4, atol=1e-4)


@spec("int", "shuffle", "shared", "barrier")
def walsh_shuffle(rng: np.random.Generator) -> Launch:
    data = ints(rng, 1024)
    v, step = data.astype(np.int64), 1
    while step < 1024:
        v = v.reshape(-1, 2, step)
        v = np.stack([v[:, 0] + v[:, 1], v[:, 0] - v[:, 1]], 1).reshape(-1)
        step *= 2
    return Launch((1, 1, 1), (1024, 1, 1), [data.copy()], {0: (v & 0xFFFFFFFF).astype(U32).view(I32)})


@spec("f32", "shared", "constant", "barrier", "loop")
def convolution(rng: np.random.Generator) -> Launch:
    w, h = 50, 20
    image = floats(rng, w * h).reshape(h, w)
    line = np.array([1, 2, 3, 2, 1], F32)
    weight = np.outer(line, line)
    weight[4, 4] = -1
    p, want = np.pad(image, 2), np.zeros((h, w), F32)
    for dy in range(5):
        for dx in range(5):
            want = fma32(np.full((h, w), weight[dy, dx]), p[dy : dy + h, dx : dx + w], want)
    args = [image.reshape(-1), np.zeros(w * h, F32), I32(w), I32(h)]
    return Launch((4, 3, 1), (16, 8, 1), args, {1: want.reshape(-1)})


@spec("f64", "division", "rounding")
def f64_poly(rng: np.random.Generator) -> Launch:
    n = 32
    x, y = rng.standard_normal(n) * np.exp2(rng.integers(-3, 4, n)), rng.standard_normal(n) * np.exp2(rng.integers(-8, 9, n))
    p = np.full(n, 1.0 / 5040)
    for mode, c in (("n", 1 / 720), ("n", 1 / 120), ("n", 1 / 24), ("z", 1 / 6), ("u", 0.5), ("d", y)):
        p = each64(mode, lambda a, b, d: a * b + d, p, x, np.broadcast_to(c, n))
    add, times, over = lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a / b
    rows = [p, each64("z", add, x, y), each64("u", add, x, y), each64("d", times, x, y), each64("z", times, x, y), x / y, each64("u", over, x, y),
            each64("d", root, y * y), each64("z", lambda a: 1 / a, y)]  # fmt: skip
    return Launch((1, 1, 1), (32, 1, 1), [x, y, np.zeros(9 * n), I32(n)], {2: np.concatenate(rows)})


@spec("f32", "division", "rounding", "convert", "mufu")
def f32_rounding(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = ((rng.standard_normal(n) * np.exp2(rng.integers(-12, 13, n))).astype(F32) for _ in range(2))
    a[:4], b[:4] = (1, 3e-39, 2**-126, 2.5), (3, 0.75, 1.0000001, 0.3)
    c = np.abs(a)
    add, times, over, fma = lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y, z: x * y + z
    rows = [
        each32("z", add, a, b), each32("u", add, a, b), each32("d", add, a, b), each32("u", times, a, b), each32("z", times, a, b),
        each32("d", fma, a, b, c), each32("z", fma, a, b, -c), each32("u", over, a, b), each32("z", over, a, b), each32("d", root, c),
        each32("u", lambda v: 1 / v, b), a / b,
    ]  # fmt: skip
    numbers = b.view(I32).astype(np.int64)
    down = each32("z", lambda v: v, numbers.astype(F64))
    whole = [np.ceil(a), np.floor(a), np.rint(c)]
    want = np.concatenate([*(v.astype(np.int64).astype(I32) for v in whole), down.view(I32)])
    args = [a, b, np.zeros(12 * n, F32), np.zeros(4 * n, I32), I32(n)]
    return Launch((2, 1, 1), (32, 1, 1), args, {2: np.concatenate(rows), 3: want})


@spec("f64", "calls", "division", "local", "mufu")
def f64_functions(rng: np.random.Generator) -> Launch:
    n = 32
    x = rng.standard_normal(n) * np.exp2(rng.integers(-2, 6, n))
    p = np.abs(x) + 0.25
    rows = [np.exp(x * 0.5), np.log(p), np.sin(x), np.power(p, x * 0.25), np.tanh(x), [math.erf(v) for v in x], np.cbrt(x), np.arctan2(x, p - 1)]
    return Launch((1, 1, 1), (32, 1, 1), [x, np.zeros(8 * n), I32(n)], {1: np.concatenate(rows)}, rtol=4e-15, atol=1e-300)


@spec("f32", "calls", "division", "local", "mufu", "convert")
def f32_functions(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = (floats(rng, n) * 4).astype(F32), (floats(rng, n) * 3).astype(F32)
    a[:5], b[:5] = (-0.0, 2.5, -3.5, 1e-40, 100), (1, -0.5, 7, 3, 0.001)
    x, y = a.astype(F64), b.astype(F64)
    p = np.abs(x) + 0.125
    rows = [p.astype(F32).astype(F64) ** y, [math.erf(v) for v in x], [math.lgamma(v) for v in p], np.arctan2(x, y),
            np.arcsin((x * 0.125).clip(-1, 1)), np.log1p(p), np.expm1(x * 0.25), np.hypot(x, y)]  # fmt: skip
    mantissa, exponent = np.frexp(a)
    e = exponent.astype(I32)
    half_away = np.trunc(x + np.copysign(0.5, x))
    exact = [mantissa, np.ldexp(b, e & 15), np.fmod(a, b), [math.remainder(u, v) for u, v in zip(x, y, strict=True)], np.nextafter(a, b),
             np.copysign(a, b), np.copysign(half_away, a), np.trunc(b)]  # fmt: skip
    bits = np.signbit(a).astype(I32) << 2 | 8
    integers = np.concatenate([e, bits, np.rint(a).astype(I32), np.frexp((np.abs(a) + F32(0.125)).astype(F32))[1] - 1]).astype(I32)
    args = [a, b, np.zeros(8 * n, F32), np.zeros(8 * n, F32), np.zeros(4 * n, I32), I32(n)]
    expected = {2: np.concatenate(rows).astype(F32), 3: np.concatenate(exact).astype(F32), 4: integers}
    return Bounded((2, 1, 1), (32, 1, 1), args, expected, rtol=2e-6, atol=1e-6, exact=(3,))


class Bounded(Launch):
    """A launch with some buffers compared bit for bit although others have a bound."""

    def __init__(self, *args: object, exact: tuple[int, ...], **keywords: object) -> None:
        super().__init__(*args, **keywords)  # type: ignore[arg-type]
        self.exact = exact

    def check(self, args: list) -> None:
        for index in self.exact:
            np.testing.assert_array_equal(args[index].view(U32), self.expected[index].view(U32), err_msg=f"argument {index}")
        super().check(args)


@spec("f32", "loop")
def kahan(rng: np.random.Generator) -> Launch:
    rows, columns = 64, 50
    x = (rng.standard_normal((columns, rows)) * np.exp2(rng.integers(-10, 11, (columns, rows)))).astype(F32)
    s, c, plain = np.zeros(rows, F32), np.zeros(rows, F32), np.zeros(rows, F32)
    for v in x:
        y = v - c
        t = s + y
        c, s, plain = (t - s) - y, t, plain + v
    return Launch((2, 1, 1), (32, 1, 1), [x.reshape(-1), np.zeros(rows, F32), np.zeros(rows, F32), I32(columns)], {1: s, 2: plain})


@spec("f64", "shared", "barrier", "division", "calls", "divergence")
def cholesky(rng: np.random.Generator) -> Launch:
    m = rng.standard_normal((3, 8, 8))
    a, b = m @ m.transpose(0, 2, 1) + 4 * np.eye(8), rng.standard_normal((3, 8))
    want = np.linalg.solve(a, b[..., None])[..., 0]
    return Launch((3, 1, 1), (8, 8, 1), [a.reshape(-1), b.reshape(-1), np.zeros(24)], {2: want.reshape(-1)}, rtol=1e-9, atol=1e-11)


@spec("f32", "local", "division", "divergence", "loop")
def gauss_solve(rng: np.random.Generator) -> Launch:
    n = 20
    a = (rng.standard_normal((n, 6, 7)) + 3 * np.eye(6, 7)[rng.permutation(6)]).astype(F32)
    want = np.linalg.solve(a[..., :6].astype(F64), a[..., 6:].astype(F64))
    return Launch((1, 1, 1), (32, 1, 1), [a.reshape(-1), np.zeros(6 * n, F32), I32(n)], {1: want.astype(F32).reshape(-1)}, rtol=2e-2, atol=2e-3)


@spec("f32", "shared", "barrier", "vote", "loop")
def jacobi(rng: np.random.Generator) -> Launch:
    grid, limit, tolerance = floats(rng, 2 * 324).reshape(2, 18, 18), 60, F32(0.02)
    want, rounds = grid.copy(), []
    for v in want:
        k = 0
        while k < limit:
            around = F32(0.25) * ((v[:-2, 1:-1] + v[2:, 1:-1]) + (v[1:-1, :-2] + v[1:-1, 2:]))
            small = (np.abs(around - v[1:-1, 1:-1]) < tolerance).all()
            v[1:-1, 1:-1] = around
            if small:
                break
            k += 1
        rounds.append(k)
    args = [grid.reshape(-1).copy(), np.zeros(2, I32), tolerance, I32(limit)]
    return Launch((2, 1, 1), (16, 16, 1), args, {0: want.reshape(-1), 1: np.array(rounds, I32)})


@spec("f32", "shuffle", "mufu", "division", "loop")
def attention(rng: np.random.Generator) -> Launch:
    queries, keys = 5, 75
    q, k, v = floats(rng, queries * 32).reshape(-1, 32), floats(rng, keys * 32).reshape(-1, 32), floats(rng, keys * 32).reshape(-1, 32)
    s = (q.astype(F64) @ k.T) / np.sqrt(32)
    e = np.exp(s - s.max(1, keepdims=True))
    want = (e @ v) / e.sum(1, keepdims=True)
    args = [q.reshape(-1), k.reshape(-1), v.reshape(-1), np.zeros(queries * 32, F32), I32(keys)]
    return Launch((queries, 1, 1), (32, 1, 1), args, {3: want.astype(F32).reshape(-1)}, rtol=1e-4, atol=1e-5)


@spec("f32", "mufu", "division", "select")
def black_scholes(rng: np.random.Generator) -> Launch:
    n = 100
    price, strike, years = (rng.uniform(low, high, n).astype(F32) for low, high in ((5, 30), (1, 100), (0.25, 10)))
    s, x, t, rate, sigma = price.astype(F64), strike.astype(F64), years.astype(F64), 0.02, 0.3
    d1 = (np.log(s / x) + (rate + sigma**2 / 2) * t) / (sigma * np.sqrt(t))
    normal = np.vectorize(lambda d: 0.5 * (1 + math.erf(d / math.sqrt(2))))
    later, d2 = x * np.exp(-rate * t), d1 - sigma * np.sqrt(t)
    call, put = s * normal(d1) - later * normal(d2), later * normal(-d2) - s * normal(-d1)
    args = [price, strike, years, np.zeros(n, F32), np.zeros(n, F32), F32(rate), F32(sigma), I32(n)]
    return Launch((2, 1, 1), (64, 1, 1), args, {3: call.astype(F32), 4: put.astype(F32)}, rtol=1e-4, atol=1e-4)
