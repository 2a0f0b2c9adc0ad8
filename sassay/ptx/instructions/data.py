# ruff: noqa: E501 (a table)
"""Moves, conversions, loads and stores, addresses. Source: PTX ISA 9.5 chapter "Data movement and conversion"; floors measured with ptxas 13.5."""

from __future__ import annotations

from sassay.ptx.instructions.entry import table

ROWS = table("""
$MEM = b8,u8,s8,b16,u16,s16,b32,u32,s32,b64,u64,s64,f16,f32,f64,b128
$SPACE = global,local,shared,shared::cta,shared::cluster,const,param,param::entry,param::func
$CACHE = ca,cg,cs,lu,cv,wb,wt
$HINT = l1?=L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate l2?=L2::evict_normal,L2::evict_first,L2::evict_last hint?=L2::cache_hint pre?=L2::64B,L2::128B,L2::256B
$FLOORS = hint : 7.4 sm_80+; type=b128 : 8.3 sm_70+; space=shared::cluster : 7.8 sm_90+; scope=cluster : 7.8 sm_90+; l2 : 8.8 sm_100+; vec=v8 : 8.8 sm_100+; mmio : 8.2 sm_70+
mov | type=b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64,pred,b128,f16,f16x2,b8 | d=type m=type | type=b128 : 8.3 sm_70+ |
mov.unpack | type=b16,b32,b64,b128 | v r=type | type=b128 : 8.3 sm_70+ |
mov.vector | vec=v2,v4 type=b16,b32,b64,u16,u32,u64,s16,s32,s64,f16,f32,f64,b8,u8,s8 | any any | |
ld | weak? order?=volatile,relaxed,acquire mmio? scope?=cta,cluster,gpu,sys space?=$SPACE cop?=$CACHE $HINT unified? proxy?=proxy::readonly vec?=v2,v4,v8 type=$MEM | _w=type@vec a s=u64?hint s=b32?unified | $FLOORS; proxy : 9.4 sm_90+ |
ld.nc | order?=weak,volatile space=global cop?=$CACHE nc $HINT vec?=v2,v4,v8 type=$MEM | _w=type@vec a s=u64?hint | $FLOORS |
ldu | space?=global vec?=v2,v4 type=$MEM | w=type@vec a | |
st | weak? order?=volatile,relaxed,release mmio? scope?=cta,cluster,gpu,sys space?=$SPACE cop?=$CACHE $HINT vec?=v2,v4,v8 type=$MEM | a x=type@vec s=u64?hint | $FLOORS |
st.async | async weak? mbar?=mbarrier::complete_tx::bytes order?=mmio,release,relaxed scope?=cluster,gpu,sys space?=shared::cluster,shared::cta,global vec?=v2,v4 type=$MEM | a x=type@vec a? | 8.1 sm_90+; type=b128 : 9.2 sm_90+ |
st.bulk | bulk weak? space?=shared::cta,shared,shared::cluster | a any s=u64 | 8.6 sm_100+ |
prefetch | space?=global,local level=L1,L2,L1::32B,L2::evict_last,L2::evict_normal valid_addr? | a | |
prefetch.tensormap | space?=const,param tensormap | a | 8.0 sm_90+ |
prefetchu | L1 | a | |
applypriority | space?=global prio=L2::evict_normal | a i | 7.4 sm_80+ |
applypriority.bulk | async bulk tensor? dim?=1d,2d,3d,4d,5d mode?=tile,im2col,im2col::w,im2col::w::128,tile::gather4 space?=global prio?=L2::evict_normal,L2::evict_last,L2::evict_first | B any? any? any? | 9.4 |
discard | space?=global L2 | a i | 7.4 sm_80+ |
createpolicy.fractional | fractional p1=L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged p2?=L2::evict_first,L2::evict_unchanged b64 | d=b64 s=f32? | 7.4 sm_80+ |
createpolicy.range | range fabric? space?=global p1=L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged p2?=L2::evict_first,L2::evict_unchanged b64 | d=u64 a s=u32 s=u32 | 7.4 sm_80+ |
createpolicy.cvt | cvt L2 b64 | d=u64 s=u64 | 7.4 sm_80+ |
isspacep | space=const,global,local,shared,shared::cta,shared::cluster,param,param::entry | q s=u64 | space=shared::cluster : 7.8 sm_90+ |
isspacep.32 | space=const,global,local,shared,shared::cta,shared::cluster,param,param::entry | q s=u32 | |
cvta | to? space=const,global,local,shared,shared::cta,shared::cluster,param,param::entry type=u32,u64 | d=type m=type | space=shared::cluster : 7.8 sm_90+ |
mapa | space?=shared::cluster type=u32,u64 | d=type m=type s=u32 | 7.8 sm_90+ |
getctarank | space?=shared::cluster type=u32,u64 | d=u32 m=type | 7.8 sm_90+ |
prmt | b32 mode?=f4e,b4e,rc8,ecl,ecr,rc16 | d=b32 s=b32 s=b32 s=b32 | |
shfl | sync mode=up,down,bfly,idx b32 | _D=b32 s=b32 s=u32 s=u32 s=u32 | |
shfl.nosync | mode=up,down,bfly,idx b32 | D=b32 s=b32 s=b32 s=b32 | |
$CINT = u8,u16,u32,u64,s8,s16,s32,s64
$CFLOAT = f16,bf16,f32,f64
$TINY2 = e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2,ue8m0x2,s2f6x2,ue5m3x2
$TINY4 = e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,ue8m0x4
$RND = rnd?=rn,rz,rm,rp,rna,rs,rni,rzi,rmi,rpi
cvt | $RND ftz? sat? relu? satf?=satfinite dtype=$CINT,$CFLOAT stype=$CINT,$CFLOAT | w=dtype x=stype | dtype=bf16 : 7.0 sm_80+; stype=bf16 : 7.1 sm_80+; relu : 7.0 sm_80+ | relu > -sat; rnd & dtype=$CINT > stype=$CFLOAT
cvt.tf32 | $RND satf?=satfinite relu? tf32 f32 | d=b32 s=f32 | 7.0 sm_80+; satf : 8.1 sm_80+ |
cvt.pair | $RND satf?=satfinite relu? dtype=f16x2,bf16x2 f32 | w=dtype s=f32 s=f32 | 7.0 sm_80+ |
cvt.pair.rs | rnd=rs satf?=satfinite relu? dtype=f16x2,bf16x2 f32 | w=dtype s=f32 s=f32 s=b32 | 8.7 sm_100a sm_103a sm_107f |
cvt.narrow | $RND satf?=satfinite relu? pzo? scaled?=scaled::n2::ue8m0 dtype=$TINY2 f32 | d=dtype s=f32 s=f32 any?scaled | 7.8; dtype=e4m3x2,e5m2x2 : 7.8 sm_89+; dtype=e2m3x2,e3m2x2,e2m1x2,ue8m0x2 : 8.6 sm_100f sm_103f sm_110f sm_120f |
cvt.narrow.half | $RND satf?=satfinite relu? pzo? scaled?=scaled::n2::ue8m0 dtype=$TINY2 stype=f16x2,bf16x2 | d=dtype r=stype any?scaled | 7.8 sm_89+ |
cvt.widen | $RND relu? satf?=satfinite scaled?=scaled::n2::ue8m0 dtype=f16x2,bf16x2 stype=$TINY2 | d=dtype r=stype any?scaled | 7.8; stype=e4m3x2,e5m2x2 : 7.8 sm_89+; stype=e2m3x2,e3m2x2,e2m1x2,ue8m0x2 : 8.6 sm_100f sm_103f sm_110f sm_120f |
cvt.four | $RND satf?=satfinite relu? scaled?=scaled::n2::ue8m0 dtype=$TINY4 f32 | any V s=b32? any? | 8.7 sm_100a sm_103a sm_107f |
cvt.pack | pack sat dtype=u16,s16,u2,s2,u4,s4,u8,s8 atype=s32 ctype?=b32 | d=b32 s=s32 s=s32 s=b32?ctype | 6.5 sm_72+ |
stacksave | type=u32,u64 | d=type | 7.3 sm_52+ |
stackrestore | type=u32,u64 | r=type | 7.3 sm_52+ |
alloca | type=u32,u64 | d=type s=type i? | 7.3 sm_52+ |
spcompress | * | any any any? any? any? | 9.4 |
spdecompress | * | any any any? any? any? | 9.4 |
""")
