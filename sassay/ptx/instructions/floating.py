# ruff: noqa: E501 (a table)
"""Floating point in all widths, comparison and selection. Source: PTX ISA 9.5; floors measured with ptxas 13.5."""

from __future__ import annotations

from sassay.ptx.instructions.entry import table

_ARITHMETIC = "\n".join(
    f"""
{op}.f32 | rnd?=rn,rz,rm,rp ftz? sat? type=f32 | d=type {src} | |
{op}.f64 | rnd?=rn,rz,rm,rp type=f64 | d=type {src} | |
{op}.f32x2 | rnd?=rn,rz,rm,rp ftz? type=f32x2 | d=type {src} | 8.6 sm_100+ |
{op}.f16 | rnd?=rn ftz? sat? type=f16,f16x2 {relu} | d=type {src} | relu : 7.0 sm_80+; oob : 8.1 sm_90+ | relu > -sat
{op}.bf16 | rnd?=rn type=bf16,bf16x2 {relu} | d=type {src} | {bf} |
{op}.fp8 | rnd?=rn,rz ftz? sat? dtype=f16x2,bf16x2,f32x2,e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,ue8m0x4 atype=e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,f16x2,bf16x2 | any any any any? | 9.4 |
"""
    for op, src, relu, bf in (
        ("add", "s=type s=type", "", "7.8 sm_90+"), ("sub", "s=type s=type", "", "7.8 sm_90+"),
        ("mul", "s=type s=type", "", "7.8 sm_90+"), ("fma", "s=type s=type s=type", "relu? oob?", "7.0 sm_80+; oob : 8.1 sm_90+"),
    )
)  # fmt: skip
ROWS = table(
    _ARITHMETIC
    + """
$CMP = eq,ne,lt,le,gt,ge,lo,ls,hi,hs,equ,neu,ltu,leu,gtu,geu,num,nan
$ANY = b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64
add.mixed | rnd?=rn,rz,rm,rp sat? f32 atype=f16,bf16 | d=f32 s=atype s=f32 | 8.6 sm_100+ |
sub.mixed | rnd?=rn,rz,rm,rp sat? f32 atype=f16,bf16 | d=f32 s=atype s=f32 | 8.6 sm_100+ |
fma.mixed | rnd?=rn,rz,rm,rp sat? f32 atype=f16,bf16 | d=f32 s=atype s=atype s=f32 | 8.6 sm_100+ |
mad.f32 | rnd?=rn,rz,rm,rp ftz? sat? f32 | d=f32 s=f32 s=f32 s=f32 | |
mad.f64 | rnd?=rn,rz,rm,rp f64 | d=f64 s=f64 s=f64 s=f64 | |
div.f32 | mode=approx,full,rn,rz,rm,rp ftz? f32 | d=f32 s=f32 s=f32 | |
div.f64 | mode=rn,rz,rm,rp f64 | d=f64 s=f64 s=f64 | |
testp | op=finite,infinite,number,notanumber,normal,subnormal type=f32,f64 | q s=type | |
copysign | type=f32,f64 | d=type s=type s=type | |
abs.float | ftz? type=f32,f64,f16,f16x2,bf16,bf16x2 | d=type s=type | type=bf16,bf16x2 : 7.0 sm_80+ | ftz > -type=f64
neg.float | ftz? type=f32,f64,f16,f16x2,bf16,bf16x2 | d=type s=type | type=bf16,bf16x2 : 7.0 sm_80+ |
min.float | ftz? NaN? xorsign? abs? type=f32,f64 | d=type s=type s=type | NaN : 7.0 sm_80+; xorsign : 7.2 sm_86+ |
min.three | ftz? NaN? xorsign? abs? f32 | d=f32 s=f32 s=f32 s=f32 | 8.8 sm_100+ |
min.half | ftz? NaN? xorsign? abs? type=f16,f16x2,bf16,bf16x2 | d=type s=type s=type | 7.0 sm_80+; xorsign : 7.2 sm_86+ |
max.float | ftz? NaN? xorsign? abs? type=f32,f64 | d=type s=type s=type | NaN : 7.0 sm_80+; xorsign : 7.2 sm_86+ |
max.three | ftz? NaN? xorsign? abs? f32 | d=f32 s=f32 s=f32 s=f32 | 8.8 sm_100+ |
max.half | ftz? NaN? xorsign? abs? type=f16,f16x2,bf16,bf16x2 | d=type s=type s=type | 7.0 sm_80+; xorsign : 7.2 sm_86+ |
rcp.f32 | mode=approx,rn,rz,rm,rp ftz? f32 | d=f32 s=f32 | |
rcp.f64 | mode=rn,rz,rm,rp f64 | d=f64 s=f64 | |
rcp.ftz | approx ftz f64 | d=f64 s=f64 | |
sqrt.f32 | mode=approx,rn,rz,rm,rp ftz? f32 | d=f32 s=f32 | |
sqrt.f64 | mode=rn,rz,rm,rp f64 | d=f64 s=f64 | |
rsqrt | approx ftz? type=f32,f64 | d=type s=type | |
sin | approx ftz? 2pi? f32 | d=f32 s=f32 | 2pi : 9.5 sm_75+ | 2pi > ftz
cos | approx ftz? 2pi? f32 | d=f32 s=f32 | 2pi : 9.5 sm_75+ | 2pi > ftz
lg2 | approx ftz? f32 | d=f32 s=f32 | |
ex2 | approx ftz? type=f32,f16,f16x2,bf16,bf16x2 | d=type s=type | type=f16,f16x2 : 7.0 sm_75+; type=bf16,bf16x2 : 7.8 sm_90+ |
tanh | approx type=f32,f16,f16x2,bf16,bf16x2 | d=type s=type | 7.0 sm_75+; type=bf16,bf16x2 : 7.8 sm_90+ |
set | cmp=$CMP bool?=and,or,xor ftz? dtype=u32,s32,f32 stype=$ANY | d=dtype s=stype s=stype p?bool | |
set.half | cmp=$CMP bool?=and,or,xor ftz? dtype=u16,s16,u32,s32,f16,bf16,f16x2,bf16x2 stype=f16,bf16,f16x2,bf16x2 | d=dtype s=stype s=stype p?bool | stype=bf16,bf16x2 : 7.8 sm_90+ |
set.packed | cmp=$CMP bool?=and,or,xor dtype=u16x2,s16x2,u8x4,s8x4,f16x2,bf16x2 stype=u16x2,s16x2,u8x4,s8x4 | any any any any? | 9.4 |
setp | cmp=$CMP bool?=and,or,xor ftz? type=$ANY | q s=type s=type p?bool | | bool > cmp
setp.half | cmp=$CMP bool?=and,or,xor ftz? type=f16,f16x2,bf16,bf16x2 | q s=type s=type p?bool | type=bf16,bf16x2 : 7.8 sm_90+ |
selp | type=$ANY,f16,f16x2,bf16,bf16x2,b128 | d=type s=type s=type p | |
slct | ftz? dtype=$ANY ctype=s32,f32 | d=dtype s=dtype s=dtype s=ctype | |
"""
)
