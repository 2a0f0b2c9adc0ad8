# ruff: noqa: E501 (a table)
"""Asynchronous and bulk copies, tensor maps, matrix operations of the warp, the warpgroup and the tensor memory. Source: PTX ISA 9.5."""

from __future__ import annotations

from sassay.ptx.instructions.entry import table

ROWS = table("""
$L2 = L2::64B,L2::128B,L2::256B
$RED = and,or,xor,add,inc,dec,min,max
cp.async | async cop=ca,cg space=shared,shared::cta global l2hint?=L2::cache_hint pre?=$L2 | a a i s=u32? s=u64?l2hint | 7.0 sm_80+ |
cp.async.hint | async cop=ca,cg space=shared,shared::cta global l2hint=L2::cache_hint pre?=$L2 | a a i s=b64 | 7.4 sm_80+ |
cp.async.ignore | async cop=ca,cg space=shared,shared::cta global l2hint?=L2::cache_hint pre?=$L2 | a a i p s=u64?l2hint | 7.0 sm_80+ |
cp.async.group | async op=commit_group,wait_all | | 7.0 sm_80+ |
cp.async.wait | async wait_group | i | 7.0 sm_80+ |
cp.async.mbarrier | async mbarrier arrive noinc? space?=shared,shared::cta b64 | a | 7.0 sm_80+ |
$BSPACE = shared::cluster,shared::cta,global
$BULK = sem?=relaxed,weak scope?=sys,gpu,cluster,cta dst=$BSPACE src=$BSPACE done=mbarrier::complete_tx::bytes,bulk_group mc?=multicast::cluster,multicast::32b l2hint?=L2::cache_hint mask?=cp_mask oob?=ignore_oob type?=b128
cp.async.bulk | async bulk $BULK | a a s=u32 any? any? any? any? any? | 8.0 sm_90+; oob : 9.2 sm_90+; mask : 8.6 sm_100+; sem : 9.3 |
cp.reduce.async.bulk | reduce async bulk dst=$BSPACE src=$BSPACE done=mbarrier::complete_tx::bytes,bulk_group l2hint?=L2::cache_hint op=$RED noftz? type=f16,bf16,b32,u32,s32,b64,u64,s64,f32,f64 | a a s=u32 any? any? | 8.0 sm_90+ |
cp.async.bulk.prefetch | async bulk prefetch L2 global l2hint?=L2::cache_hint | a s=u32 s=u64?l2hint | 8.0 sm_90+ |
$MODE = tile,tile::gather4,tile::scatter4,im2col,im2col::w,im2col::w::128,im2col_no_offs,im2col_no_offs::w
$DIM = 1d,2d,3d,4d,5d
cp.async.bulk.tensor | async bulk tensor dim=$DIM dst=$BSPACE src=$BSPACE mode?=$MODE done=mbarrier::complete_tx::bytes,bulk_group mc?=multicast::cluster,multicast::32b cta?=cta_group::1,cta_group::2 l2hint?=L2::cache_hint override?=override::dim,override::stride | B B any? any? any? any? any? | 8.0 sm_90+; cta : 8.6 sm_100f sm_103f sm_107f sm_110f; mode=tile::gather4,tile::scatter4,im2col::w,im2col::w::128 : 8.6 sm_100+ |
cp.reduce.async.bulk.tensor | reduce async bulk tensor dim=$DIM dst=global src=shared::cta op=$RED mode?=$MODE done=bulk_group l2hint?=L2::cache_hint | B B s=u64?l2hint | 8.0 sm_90+ |
cp.async.bulk.prefetch.tensor | async bulk prefetch tensor dim=$DIM L2 src=global mode?=$MODE l2hint?=L2::cache_hint | B any? any? | 8.0 sm_90+ |
cp.async.bulk.commit | async bulk commit_group | | 8.0 sm_90+ |
cp.async.bulk.wait | async bulk wait_group read? restrict?=sync_restrict::proxy::async | i | 8.0 sm_90+; restrict : 9.5 sm_90+ |
tensormap.replace | replace mode=tile field=global_address,rank,box_dim,global_dim,global_stride,element_stride,elemtype,interleave_layout,swizzle_mode,swizzle_atomicity,fill_mode,alloc_class space?=global,shared::cta b1024 type=b32,b64 | a any any? | 8.3 sm_90a sm_100f sm_103f sm_107f sm_110f sm_120f |
tensormap.fence | cp_fenceproxy dst=global src=shared::cta,shared kind=tensormap::generic sem=release scope=cta,cluster,gpu,sys sync aligned | a a i | 8.3 sm_90+ |
tensormap.query | op=query * | any any? any? | 9.5 |
$LDSHAPE = m8n8,m8n16,m16n16,m16n8
ldmatrix | sync aligned shape=$LDSHAPE num=x1,x2,x4 trans? space?=shared,shared::cta type=b16,b8 src?=b8x16.b6x16_p32,b6x16_p32,b4x16_p64 | V=b32 a | 6.5 sm_75+ |
ldmatrix.narrow | sync aligned shape=$LDSHAPE num=x1,x2,x4 trans? space?=shared,shared::cta type=b8x16,s8 src=b6x16_p32,b4x16_p64,s4 | V=b32 a | 8.6; type=s8 : 9.4 |
stmatrix | sync aligned shape=m8n8,m16n8 num=x1,x2,x4 trans? space?=shared,shared::cta type=b16,b8 | a V=b32 | 7.8 sm_90+; type=b8 : 8.6 |
movmatrix | sync aligned shape=m8n8 trans b16 | d=b32 s=b32 | 7.8 sm_75+ |
$SHAPE = m16n16k16,m32n8k16,m8n32k16,m16n16k8,m8n8k4,m8n8k32,m8n8k128
$WTYPE = f16,bf16,tf32,f32,f64,u8,s8,u4,s4,b1,s32
$WSPACE = global,shared,shared::cta,shared::cluster
wmma.load | load frag=a,b,c sync aligned layout=row,col shape=$SHAPE space?=$WSPACE type=$WTYPE | V a s=u32? | |
wmma.load.shape | load frag=a,b,c sync aligned shape=$SHAPE layout=row,col space?=$WSPACE type=$WTYPE | V a s=u32? | |
wmma.store | store frag=d sync aligned layout=row,col shape=$SHAPE space?=$WSPACE type=$WTYPE | a V s=u32? | |
wmma.mma | mma op?=xor,and popc? sync aligned alayout=row,col blayout=row,col shape=$SHAPE rnd?=rn,rz,rm,rp d?=$WTYPE a?=$WTYPE b?=$WTYPE c?=$WTYPE satfinite? | V V V V | |
$MSHAPE = m8n8k4,m16n8k4,m16n8k8,m16n8k16,m16n8k32,m16n8k64,m16n8k128,m16n8k256,m8n8k16,m8n8k32,m8n8k128,m16n16k8,m16n8k96
$MTYPE = f16,bf16,tf32,f32,f64,u8,s8,u4,s4,b1,s32,e4m3,e5m2,e3m2,e2m3,e2m1
mma | sp?=sp,sp::ordered_metadata sync aligned shape=$MSHAPE alayout?=row,col blayout?=row,col satfinite? kind?=kind::f8f6f4,kind::mxf8f6f4,kind::mxf4,kind::mxf4nvf4 block_scale? vec?=scale_vec::1X,scale_vec::2X,scale_vec::4X rnd?=rn,rz,rm,rp d=$MTYPE a=$MTYPE b=$MTYPE c=$MTYPE stype?=ue8m0,ue4m3 op?=xor,and popc? | V V V V any? any? any? any? any? any? any? any? | 6.4 sm_70+; d=bf16,tf32 : 7.0 sm_80+; a=e4m3,e5m2 : 8.4 sm_89+; kind : 8.7 sm_120f sm_121f; sp : 7.1 sm_80+ |
$WG = m64n8k8,m64n16k8,m64n24k8,m64n32k8,m64n40k8,m64n48k8,m64n56k8,m64n64k8,m64n72k8,m64n80k8,m64n88k8,m64n96k8,m64n104k8,m64n112k8,m64n120k8,m64n128k8,m64n136k8,m64n144k8,m64n152k8,m64n160k8,m64n168k8,m64n176k8,m64n184k8,m64n192k8,m64n200k8,m64n208k8,m64n216k8,m64n224k8,m64n232k8,m64n240k8,m64n248k8,m64n256k8,m64n8k16,m64n16k16,m64n24k16,m64n32k16,m64n40k16,m64n48k16,m64n56k16,m64n64k16,m64n72k16,m64n80k16,m64n88k16,m64n96k16,m64n104k16,m64n112k16,m64n120k16,m64n128k16,m64n136k16,m64n144k16,m64n152k16,m64n160k16,m64n168k16,m64n176k16,m64n184k16,m64n192k16,m64n200k16,m64n208k16,m64n216k16,m64n224k16,m64n232k16,m64n240k16,m64n248k16,m64n256k16,m64n8k32,m64n16k32,m64n24k32,m64n32k32,m64n40k32,m64n48k32,m64n56k32,m64n64k32,m64n72k32,m64n80k32,m64n88k32,m64n96k32,m64n104k32,m64n112k32,m64n120k32,m64n128k32,m64n136k32,m64n144k32,m64n152k32,m64n160k32,m64n168k32,m64n176k32,m64n184k32,m64n192k32,m64n200k32,m64n208k32,m64n216k32,m64n224k32,m64n232k32,m64n240k32,m64n248k32,m64n256k32,m64n8k256,m64n16k256,m64n24k256,m64n32k256,m64n40k256,m64n48k256,m64n56k256,m64n64k256,m64n72k256,m64n80k256,m64n88k256,m64n96k256,m64n104k256,m64n112k256,m64n120k256,m64n128k256,m64n136k256,m64n144k256,m64n152k256,m64n160k256,m64n168k256,m64n176k256,m64n184k256,m64n192k256,m64n200k256,m64n208k256,m64n216k256,m64n224k256,m64n232k256,m64n240k256,m64n248k256,m64n256k256
wgmma.sync | op=fence,commit_group sync aligned | | 8.0 sm_90a |
wgmma.wait | wait_group sync aligned | i | 8.0 sm_90a |
wgmma.mma_async | mma_async sp? sync aligned shape=$WG d=f16,f32,s32 a=f16,bf16,tf32,e4m3,e5m2,u8,s8,b1 b=f16,bf16,tf32,e4m3,e5m2,u8,s8,b1 op?=and popc? satfinite? | V any any any any? any? any? any? any? any? | 8.0 sm_90a |
$T5 = 8.6 sm_100f sm_103f sm_107f sm_110f
$GROUP = cta_group::1,cta_group::2
tcgen05.alloc | alloc group=$GROUP exclusive? sync aligned space?=shared::cta,shared b32 | a s=u32 | $T5; exclusive : 9.4 |
tcgen05.dealloc | dealloc group=$GROUP exclusive? sync aligned b32 | r=b32 s=u32 | $T5 |
tcgen05.relinquish | relinquish_alloc_permit group=$GROUP exclusive? sync aligned | | $T5 |
$TSHAPE = 32x32b,16x64b,16x128b,16x256b,16x32bx2
$NUM = x1,x2,x4,x8,x16,x32,x64,x128
tcgen05.ld | ld sync aligned shape=$TSHAPE num?=$NUM pack?=pack::16b b32 | V=b32 a i? | $T5 |
tcgen05.ld.red | ld red sync aligned shape=$TSHAPE num?=$NUM op=min,max abs? NaN? type=u32,s32,f32 | V any a i? | 8.8 sm_103f sm_107f sm_110f |
tcgen05.st | st sync aligned shape=$TSHAPE num?=$NUM unpack?=unpack::16b b32 | a any any? | $T5 |
tcgen05.wait | op=wait::ld,wait::st sync aligned | | $T5 |
tcgen05.cp | cp group=$GROUP shape=128x256b,4x256b,128x128b,64x128b,32x128b mc?=warpx2::02_13,warpx2::01_23,warpx4 dst?=b8x16 src?=b6x16_p32,b4x16_p64 | a s=b64 | $T5 |
tcgen05.shift | shift group=$GROUP down | a | $T5 |
tcgen05.fence | op=fence::before_thread_sync,fence::after_thread_sync | | $T5 |
tcgen05.mma | op=mma,commit * | any any? any? any? any? any? any? any? any? any? | $T5 |
""")
