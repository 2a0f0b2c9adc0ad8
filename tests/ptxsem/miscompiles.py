"""Programs of the differential tester that ptxas 13.5 miscompiles for sm_90a (-O1 and -O3), minimised. The generator avoids these two patterns."""

from __future__ import annotations

MISCOMPILED: dict[str, tuple[int, list[str]]] = {
    "a guard on testp is ignored": (3127, ["@%p2 testp.normal.f64 %p0, %d1;"]),
    "a guard on testp is ignored, f32": (3093, ["@!%p2 testp.normal.f32 %p1, %f2;"]),
    "two 16-bit loads become one 32-bit load, whose upper half then survives a guarded 8-bit saturation": (
        3225,
        ["{ .reg .b16 %t; or.b16 %t, %h2, 1; div.u16 %h1, %h1, %t; }", "@!%p1 cvt.sat.u8.u64 %h0, %w3;"],
    ),
}
"""What is wrong: the seed of the inputs, and the statements."""
