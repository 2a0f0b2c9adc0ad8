"""Instructions as the semantics sees them, and the registry that turns one into a function over an algebra.

`isa` knows nothing of the SASS model, so an instruction comes as a `Shape` (`sassay.sass.meaning` makes them). A definition is registered for
an opcode; it gets a `Site`, says which operands it reads and writes, consumes every modifier, and returns a pure function of the fetched values.
Modifiers are resolved once per static instruction; what is left over is an error by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sassay.errors import SassError
from sassay.isa.semantics.algebra import Algebra

Value = Any
Function = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Source:
    """One operand. `kind`: "R" "UR" "P" "UP" "B" registers, "imm", "const", "mem", "target", "name".

    `zero` marks RZ, URZ (0) and PT, UPT (true). `value` holds an immediate: for `number` "int" the number, for "f32", "f64", "f16", "bf16" the raw
    bits (of the high word for f64).
    """

    kind: str
    zero: bool = False
    neg: bool = False
    absolute: bool = False
    invert: bool = False
    suffix: tuple[str, ...] = ()
    value: int = 0
    number: str = "int"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """An instruction without its register numbers."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Source, ...]

    @property
    def mnemonic(self) -> str:
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Access:
    """A value read or written: operand position, width in bits, and which 32-bit part (or predicate) of a tuple (or of PR)."""

    operand: int
    width: int
    part: int = 0


@dataclass(frozen=True, slots=True)
class Compiled:
    """An instruction's meaning: `run` maps the raw values of `reads` to those of `writes`. `lanes`: `run` takes the active mask first."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    run: Function
    lanes: bool = False
    cells: tuple[str, ...] = ()


_REGISTERS = frozenset({"R", "UR"})
_PREDICATES = frozenset({"P", "UP"})


@dataclass(slots=True)
class Site:
    """One instruction while its definition looks at it. Operands are taken from the front, in the order of the text."""

    shape: Shape
    alg: Algebra[Any]
    at: int = 0
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    plan: list[tuple[str, Any, Callable[[Any], Any] | None]] = field(default_factory=list)
    keep: list[bool] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    lanes: bool = False

    def fail(self, why: str) -> SassError:
        """The error to raise for this instruction."""
        return SassError(f"no semantics for {self.shape.mnemonic}: {why}")

    # modifiers

    def flag(self, name: str) -> bool:
        """Take modifier `name` if it is there."""
        if name in self.left:
            self.left.remove(name)
            return True
        return False

    def choose(self, *names: str, default: str = "") -> str:
        """Take the first modifier that is among `names`, or give `default`."""
        for m in self.left:
            if m in names:
                self.left.remove(m)
                return m
        return default

    # operands

    def peek(self, offset: int = 0) -> Source | None:
        """The operand `offset` places ahead, or None."""
        i = self.at + offset
        return self.shape.operands[i] if 0 <= i < len(self.shape.operands) else None

    def rest(self) -> int:
        """Number of operands not yet taken."""
        return len(self.shape.operands) - self.at

    def is_zero(self, offset: int = 0) -> bool:
        """Whether the operand ahead is RZ, URZ or an immediate zero."""
        s = self.peek(offset)
        return s is not None and ((s.zero and s.kind in _REGISTERS) or (s.kind == "imm" and s.value == 0))

    def is_predicate(self, offset: int = 0) -> bool:
        s = self.peek(offset)
        return s is not None and s.kind in _PREDICATES

    def _next(self) -> tuple[int, Source]:
        i = self.at
        if i >= len(self.shape.operands):
            raise self.fail(f"operand {i} is missing")
        self.at += 1
        return i, self.shape.operands[i]

    def skip(self) -> Source:
        """Pass over an operand that carries no value."""
        return self._next()[1]

    def write(self, width: int = 32, parts: int = 1) -> bool:
        """The next operand is a destination of `parts` results of `width` bits each. Whether it is a real one (not RZ or PT)."""
        i, s = self._next()
        if s.kind not in _REGISTERS and s.kind not in _PREDICATES:
            raise self.fail(f"operand {i} is no destination")
        if (s.kind in _PREDICATES) != (width == 1):
            raise self.fail(f"operand {i}: a {width}-bit result does not go there")
        for part in range(parts):
            self.keep.append(not s.zero)
            if not s.zero:
                self.writes.append(Access(i, width, part))
        return not s.zero

    def write_predicates(self, count: int) -> tuple[bool, ...]:
        """Up to `count` predicate destinations that stand next; missing ones are dropped results. Which are real ones."""
        live: list[bool] = []
        while len(live) < count:
            if self.is_predicate():
                live.append(self.write(1))
            else:
                self.keep.append(False)
                live.append(False)
        return tuple(live)

    def constant(self, value: int, width: int) -> None:
        """Add a fixed argument."""
        self.plan.append(("k", self.alg.const(value, width), None))

    def raw(self, width: int = 32, part: int = 0, *, operand: int | None = None) -> None:
        """An argument without operand modifiers: 32-bit part `part` of a tuple, or a special register."""
        i, s = self._next() if operand is None else (operand, self.shape.operands[operand])
        if s.zero:
            self.constant(1 if s.kind in _PREDICATES else 0, width)
            return
        if s.kind == "imm":
            self.constant(s.value, width)
            return
        self.plan.append(("v", len(self.reads), None))
        self.reads.append(Access(i, width, part))

    def argument(self, width: int, transform: Callable[[Any], Any] | None, value: int | None = None) -> None:
        """The next operand as an argument: raw value `width` bits wide (or the immediate `value`), through `transform`."""
        i, s = self._next()
        if value is not None or s.zero:
            k = self.alg.const(value if value is not None else (1 if s.kind in _PREDICATES else 0), width)
            self.plan.append(("k", transform(k) if transform is not None else k, None))
            return
        if s.kind in ("mem", "target", "B"):
            raise self.fail(f"operand {i} is no value")
        self.plan.append(("v" if transform is None else "t", len(self.reads), transform))
        self.reads.append(Access(i, width))

    def predicate(self) -> None:
        """The next operand as a width-1 argument, inverted where it says so."""
        s = self.peek()
        if s is None or s.kind not in _PREDICATES:
            raise self.fail(f"operand {self.at} is no predicate")
        alg = self.alg
        self.argument(1, (lambda v: alg.not_(v, 1)) if s.invert else None)

    def predicate_or(self, default: bool) -> None:
        """As `predicate`, with a value for an operand that the text leaves out."""
        if self.is_predicate():
            self.predicate()
        else:
            self.constant(int(default), 1)

    def integer(self, width: int = 32, *, negate: bool = True) -> None:
        """The next operand as an integer: `-` negates, `~` inverts, bars take the absolute value. `negate=False` refuses `-`."""
        s = self.peek()
        if s is None:
            raise self.fail(f"operand {self.at} is missing")
        if (s.neg and not negate) or (s.absolute and s.kind != "R"):
            raise self.fail(f"operand {self.at}: modifier not known here")
        suffix = tuple(x for x in s.suffix if x not in ("64", "32"))
        if suffix:
            raise self.fail(f"operand {self.at}: suffix {'.'.join(suffix)} not known here")
        alg = self.alg
        steps: list[Callable[[Any], Any]] = []
        if s.absolute:
            zero = alg.const(0, width)
            steps.append(lambda v: alg.ite(alg.slt(v, zero, width), alg.neg(v, width), v, width))
        if s.neg:
            steps.append(lambda v: alg.neg(v, width))
        if s.invert:
            steps.append(lambda v: alg.not_(v, width))
        self.argument(width, _chain(steps), self._immediate(s, width))

    def _immediate(self, s: Source, width: int) -> int | None:
        if s.kind != "imm":
            return None
        if s.number == "f64" and width == 64:
            return s.value << 32
        return s.value

    def float(self, width: int, format_bits: int | None = None) -> None:
        """The next operand as a float's bits: bars clear the sign, `-` flips it. Immediates are raw bits."""
        s = self.peek()
        if s is None:
            raise self.fail(f"operand {self.at} is missing")
        if s.invert or any(x not in ("64", "32") for x in s.suffix):
            raise self.fail(f"operand {self.at}: modifier not known here")
        self.argument(width, sign_steps(self.alg, s, width), self._immediate(s, width))


    def float_in_bars(self, width: int) -> None:
        """The next operand as a float's raw bits: an operation that takes magnitude and sign apart writes it in bars. Others fail."""
        s = self.peek()
        if s is None or s.neg or s.invert or not s.absolute:
            raise self.fail(f"operand {self.at} without bars")
        self.argument(width, None, self._immediate(s, width))


def sign_steps(alg: Algebra[Any], s: Source, width: int) -> Callable[[Any], Any] | None:
    """Absolute value and negation of a float by its sign bit."""
    steps: list[Callable[[Any], Any]] = []
    if s.absolute:
        mask = alg.const((1 << (width - 1)) - 1, width)
        steps.append(lambda v: alg.and_(v, mask, width))
    if s.neg:
        sign = alg.const(1 << (width - 1), width)
        steps.append(lambda v: alg.xor(v, sign, width))
    return _chain(steps)


def _chain(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any] | None:
    if not steps:
        return None
    if len(steps) == 1:
        return steps[0]

    def both(v: Any) -> Any:
        for step in steps:
            v = step(v)
        return v

    return both


Definition = Callable[[Site], Function]


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered operation: its definition, and the evidence of its cells (level, source)."""

    define: Definition
    evidence: tuple[tuple[str, str, str], ...]
    """(modifiers, level, source), the first row that fits holds: any of the words, `+` joins words that must all occur, "" fits always."""


LEVELS = ("assumed", "documented", "corroborated", "sampled", "exhaustive")
"""From weak to strong. Assumed: a reading that nothing else supports. Documented: a public text or a measurement by others. Corroborated: ptxas's
own code and constant folding agree with the model over the model. Sampled, exhaustive: compared with hardware here."""

REGISTRY: dict[str, Entry] = {}


def operation(*opcodes: str, evidence: Iterable[tuple[str, str, str]]) -> Callable[[Definition], Definition]:
    """Register a definition for opcodes, with the evidence of its cells."""
    rows = tuple(evidence)
    assert rows and rows[-1][0] == "" and all(level in LEVELS for _, level, _ in rows), opcodes

    def register(define: Definition) -> Definition:
        for opcode in opcodes:
            assert opcode not in REGISTRY, opcode
            REGISTRY[opcode] = Entry(define, rows)
        return define

    return register


@cache
def _caller(pattern: str, lanes: bool) -> Callable[..., Function]:
    """A function that builds `run` for an argument pattern: each letter is v (as read), t (transformed) or k (constant)."""
    names, args, n = [], [], 0
    for i, letter in enumerate(pattern):
        if letter == "k":
            args.append(f"x{i}")
            continue
        names.append(f"v{n}")
        args.append(f"v{n}" if letter == "v" else f"x{i}(v{n})")
        n += 1
    if lanes:
        names.insert(0, "active")
        args.insert(0, "active")
    extra = ["fn", *(f"x{i}" for i in range(len(pattern)))]
    maker: Callable[..., Function] = eval(f"lambda {', '.join(extra)}: lambda {', '.join(names)}: fn({', '.join(args)})")
    return maker


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a cell of the semantics rests on. `cell`: opcode, or mnemonic with operand modifiers; `level` is one of LEVELS."""

    cell: str
    level: str
    source: str


def cell_of(shape: Shape) -> str:
    """The cell an instruction leans on: its mnemonic, and which operands carry which modifiers (`LEA.HI 1-`)."""
    marks = []
    for i, s in enumerate(shape.operands):
        mark = "-" * s.neg + "|" * s.absolute + "~" * (s.invert and s.kind not in _PREDICATES) + ".".join(("", *s.suffix))
        if mark and s.kind not in ("mem", "target", "name"):
            marks.append(f"{i}{mark}")
    return " ".join((shape.mnemonic, *marks))


def evidence_of(shape: Shape) -> Evidence:
    """The evidence of the cell that a value operation leans on."""
    entry = REGISTRY.get(shape.opcode)
    if entry is None:
        raise SassError(f"no semantics for {shape.mnemonic}: unknown operation {shape.opcode}")
    for words, level, source in entry.evidence:
        if not words or any(all(w in shape.modifiers for w in word.split("+")) for word in words.split()):
            return Evidence(cell_of(shape), level, source)
    raise SassError(f"no evidence for {shape.mnemonic}")


def evidence() -> list[Evidence]:
    """Every row of the ledger: one for each operation and group of modifiers."""
    rows = []
    for opcode in sorted(REGISTRY):
        for words, level, source in REGISTRY[opcode].evidence:
            rows.append(Evidence(f"{opcode} {words}".strip(), level, source))
    return rows


def compile_shape(shape: Shape, alg: Algebra[Any]) -> Compiled:
    """The meaning of a value operation or exchange over `alg`. SassError names what is not known."""
    entry = REGISTRY.get(shape.opcode)
    if entry is None:
        raise SassError(f"no semantics for {shape.mnemonic}: unknown operation {shape.opcode}")
    site = Site(shape, alg, left=list(shape.modifiers))
    fn = entry.define(site)
    if site.left:
        raise site.fail(f"unknown modifier {site.left[0]}")
    if site.rest():
        raise site.fail(f"operand {site.at} is not expected")
    pattern = "".join(p[0] for p in site.plan)
    if not site.lanes and all(letter == "v" for letter in pattern):
        run = fn
    else:
        run = _caller(pattern, site.lanes)(fn, *(p[1] if p[0] == "k" else p[2] for p in site.plan))
    if not all(site.keep):
        run = _drop(run, tuple(i for i, k in enumerate(site.keep) if k))
    return Compiled(tuple(site.reads), tuple(site.writes), run, site.lanes, (cell_of(shape),))


def _drop(run: Function, kept: tuple[int, ...]) -> Function:
    """`run` without the results whose destination is RZ or PT."""
    if len(kept) == 1:
        k = kept[0]
        return lambda *values: (run(*values)[k],)

    def some(*values: Any) -> tuple[Any, ...]:
        results = run(*values)
        return tuple(results[k] for k in kept)

    return some
