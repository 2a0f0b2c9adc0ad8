"""Integer arithmetic, carries, bit fields and video. Source: PTX ISA 9.5 chapters 9.7.1, 9.7.2 and video; floors measured with ptxas 13.5."""

from __future__ import annotations

from sassay.ptx.instructions.entry import table

ROWS = table("""
$INT = u16,s16,u32,s32,u64,s64
$W32 = u32,s32
$W64 = u32,s32,u64,s64
$V = u32,s32
add.int | type=$INT sat? | d=type s=type s=type | sat & type=u32 : 9.2 sm_107f sm_120f | sat > type=s32,u32
add.packed16 | type=u16x2,s16x2 sat? | d=type s=type s=type | 8.0 sm_90+; sat : 9.2 sm_107f sm_120f |
add.packed8 | type=u8x4,s8x4 sat? | d=type s=type s=type | 9.2 sm_107f sm_120f |
add.cc | cc type=$W64 | d=type s=type s=type | |
addc | cc? type=$W64 | d=type s=type s=type | |
sub.int | type=$INT sat? | d=type s=type s=type | sat & type=u32 : 9.2 sm_107f sm_120f | sat > type=s32,u32
sub.packed16 | type=u16x2,s16x2 sat | d=type s=type s=type | 9.2 sm_107f sm_120f |
sub.packed8 | type=u8x4,s8x4 sat? | d=type s=type s=type | 9.2 sm_107f sm_120f |
sub.cc | cc type=$W64 | d=type s=type s=type | |
subc | cc? type=$W64 | d=type s=type s=type | |
mul.half | half=lo,hi type=$INT | d=type s=type s=type | |
mul.wide | wide type=u16,s16,u32,s32 | d=2*type s=type s=type | |
mad.half | half=lo,hi type=$INT sat? | d=type s=type s=type s=type | | sat > half=hi & type=s32
mad.wide | wide type=u16,s16,u32,s32 | d=2*type s=type s=type s=2*type | |
mad.cc | half=lo,hi cc type=$W64 | d=type s=type s=type s=type | |
madc | half=lo,hi cc? type=$W64 | d=type s=type s=type s=type | |
clmad | half=lo,hi type=u64 | d=type s=type s=type s=type | 9.3 sm_80+ |
mul24 | half=lo,hi type=$W32 | d=type s=type s=type | |
mad24 | half=lo,hi sat? type=$W32 | d=type s=type s=type s=type | | sat > half=hi & type=s32
sad | type=$INT | d=type s=type s=type s=type | |
div.int | type=$INT | d=type s=type s=type | |
rem | type=$INT | d=type s=type s=type | |
abs.int | type=s16,s32,s64 | d=type s=type | |
neg.int | type=s16,s32,s64 | d=type s=type | |
neg.packed8 | type=s8x4 | d=type s=type | 9.2 sm_107f sm_120f |
min.int | type=$INT,u16x2,s16x2 relu? | d=type s=type s=type | type=u16x2,s16x2 : 8.0 sm_90+; relu : 8.0 sm_90+ | relu > type=s32,s16x2
min.packed8 | type=u8x4,s8x4 | d=type s=type s=type | 9.2 sm_107f sm_120f |
max.int | type=$INT,u16x2,s16x2 relu? | d=type s=type s=type | type=u16x2,s16x2 : 8.0 sm_90+; relu : 8.0 sm_90+ | relu > type=s32,s16x2
max.packed8 | type=u8x4,s8x4 | d=type s=type s=type | 9.2 sm_107f sm_120f |
popc | type=b32,b64 | d=u32 s=type | |
clz | type=b32,b64 | d=u32 s=type | |
bfind | shiftamt? type=$W64 | d=u32 s=type | |
fns | b32 | d=b32 s=b32 s=b32 s=s32 | |
brev | type=b32,b64 | d=type s=type | |
bfe | type=$W64 | d=type s=type s=u32 s=u32 | |
bfi | type=b32,b64 | d=type s=type s=type s=u32 s=u32 | |
szext | mode=clamp,wrap type=$W32 | d=type s=type s=u32 | 7.6 sm_70+ |
bmsk | mode=clamp,wrap b32 | d=b32 s=u32 s=u32 | 7.6 sm_70+ |
dp4a | a=$W32 b=$W32 | d=u32 s=u32 s=u32 s=u32 | |
dp2a | half=lo,hi a=$W32 b=$W32 | d=u32 s=u32 s=u32 s=u32 | |
$SEL = d=$V a=$V b=$V sat?
$OPS = d=u32 s=u32 s=u32
vadd | $SEL | $OPS s=u32? | |
vadd.merge | $SEL op2=add,min,max | $OPS s=u32 | |
vsub | $SEL | $OPS s=u32? | |
vsub.merge | $SEL op2=add,min,max | $OPS s=u32 | |
vabsdiff | $SEL | $OPS s=u32? | |
vabsdiff.merge | $SEL op2=add,min,max | $OPS s=u32 | |
vmin | $SEL | $OPS s=u32? | |
vmin.merge | $SEL op2=add,min,max | $OPS s=u32 | |
vmax | $SEL | $OPS s=u32? | |
vmax.merge | $SEL op2=add,min,max | $OPS s=u32 | |
vshl | $SEL mode=clamp,wrap | $OPS s=u32? | |
vshl.merge | $SEL mode=clamp,wrap op2=add,min,max | $OPS s=u32 | |
vshr | $SEL mode=clamp,wrap | $OPS s=u32? | |
vshr.merge | $SEL mode=clamp,wrap op2=add,min,max | $OPS s=u32 | |
vmad | $SEL po? scale?=shr7,shr15 | d=u32 n=u32 n=u32 n=u32 | |
vset | a=$V b=$V cmp=eq,ne,lt,le,gt,ge | $OPS s=u32? | |
vset.merge | a=$V b=$V cmp=eq,ne,lt,le,gt,ge op2=add,min,max | $OPS s=u32 | |
vadd2 | $SEL add? | $OPS s=u32 | |
vsub2 | $SEL add? | $OPS s=u32 | |
vavrg2 | $SEL add? | $OPS s=u32 | |
vabsdiff2 | $SEL add? | $OPS s=u32 | |
vmin2 | $SEL add? | $OPS s=u32 | |
vmax2 | $SEL add? | $OPS s=u32 | |
vset2 | a=$V b=$V cmp=eq,ne,lt,le,gt,ge add? | $OPS s=u32 | |
vadd4 | $SEL add? | $OPS s=u32 | |
vsub4 | $SEL add? | $OPS s=u32 | |
vavrg4 | $SEL add? | $OPS s=u32 | |
vabsdiff4 | $SEL add? | $OPS s=u32 | |
vmin4 | $SEL add? | $OPS s=u32 | |
vmax4 | $SEL add? | $OPS s=u32 | |
vset4 | a=$V b=$V cmp=eq,ne,lt,le,gt,ge add? | $OPS s=u32 | |
and | type=pred,b16,b32,b64 | d=type s=type s=type | |
or | type=pred,b16,b32,b64 | d=type s=type s=type | |
xor | type=pred,b16,b32,b64 | d=type s=type s=type | |
not | type=pred,b16,b32,b64 | d=type s=type | |
cnot | type=b16,b32,b64 | d=type s=type | |
lop3 | b32 | d=b32 s=b32 s=b32 s=b32 i | |
lop3.bool | op=or,and b32 | _D=b32 s=b32 s=b32 s=b32 i p | 8.2 sm_70+ |
shf | dir=l,r mode=clamp,wrap b32 | d=b32 s=b32 s=b32 s=u32 | |
shl | type=b16,b32,b64 | d=type s=type s=u32 | |
shr | type=b16,b32,b64,u16,u32,u64,s16,s32,s64 | d=type s=type s=u32 | |
""")
