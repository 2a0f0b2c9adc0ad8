"""Which chapters hold an opcode. A test holds this against the chapters; it stands apart so that only the chapters a module needs are loaded."""

from __future__ import annotations

_CHAPTERS = {
    "integer floating": (
        "add sub mul mad div abs neg min max"
    ),
    "integer": (
        "addc subc madc clmad mul24 mad24 sad rem popc clz bfind fns brev bfe bfi szext bmsk dp4a dp2a vadd vsub vabsdiff vmin vmax "
        "vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 and or xor "
        "not cnot lop3 shf shl shr"
    ),
    "floating": (
        "fma testp copysign rcp sqrt rsqrt sin cos lg2 ex2 tanh set setp selp slct"
    ),
    "data": (
        "mov ld ldu st prefetch prefetchu applypriority discard createpolicy isspacep cvta mapa getctarank prmt shfl cvt stacksave "
        "stackrestore alloca spcompress spdecompress"
    ),
    "sync": (
        "bra brx call ret exit trap brkpt nanosleep pmevent bar barrier membar fence atom red vote match activemask redux elect "
        "griddepcontrol setmaxnreg mbarrier clusterlaunchcontrol multimem fabric"
    ),
    "tensor": (
        "cp tensormap ldmatrix stmatrix movmatrix wmma mma wgmma tcgen05"
    ),
    "texture": (
        "tex tld4 txq suq istypep suld sust sured"
    ),
}
CHAPTERS: dict[str, tuple[str, ...]] = {opcode: tuple(names.split()) for names, opcodes in _CHAPTERS.items() for opcode in opcodes.split()}
