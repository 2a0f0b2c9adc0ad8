# ruff: noqa: E501 (a table)
"""Control, barriers, fences, atomics, votes and other warp operations. Source: PTX ISA 9.5; floors measured with ptxas 13.5."""

from __future__ import annotations

from sassay.ptx.instructions.entry import table

ROWS = table("""
$SEM = relaxed,acquire,release,acq_rel
$SCOPE = cta,cluster,gpu,sys
$ASPACE = global,shared,shared::cta,shared::cluster
$AFLOOR = type=bf16,bf16x2 : 7.8 sm_90+; sem : 6.0 sm_70+; scope=cluster : 7.8 sm_90+; space=shared::cluster : 7.8 sm_90+; vec : 8.1 sm_90+; hint : 7.4 sm_80+; type=b128 : 8.3 sm_90+
bra | uni? | l | |
brx | idx uni? | s=u32 l | |
call | uni? | any any? any? any? | |
ret | uni? | | |
exit | | | |
trap | | | |
brkpt | | | |
nanosleep | type=u32 | s=u32 | 6.3 sm_70+ |
pmevent | | i | |
pmevent.mask | mask | i | |
bar.sync | cta? sync aligned? | s=u32 s=u32? | |
bar.arrive | cta? arrive aligned? | s=u32 s=u32 | |
bar.popc | cta? red popc aligned? u32 | d=u32 s=u32 s=u32? p | |
bar.red | cta? red op=and,or aligned? pred | q s=u32 s=u32? p | |
bar.warp | warp sync | s=b32 | |
barrier.sync | cta? sync aligned? | s=u32 s=u32? | |
barrier.arrive | cta? arrive aligned? | s=u32 s=u32 | |
barrier.popc | cta? red popc aligned? u32 | d=u32 s=u32 s=u32? p | |
barrier.red | cta? red op=and,or aligned? pred | q s=u32 s=u32? p | |
barrier.cluster | cluster op=arrive,wait sem?=release,relaxed,acquire aligned? | | 7.8 sm_90+; sem : 8.0 |
membar | level=cta,gl,sys,cluster | | |
membar.proxy | proxy kind=alias,async,async.global,tensormap | | |
fence | sem?=sc,acq_rel,acquire,release restrict?=sync_restrict::shared::cluster,sync_restrict::shared::cta scope=$SCOPE | | 6.0 sm_70+; scope=cluster : 7.8 sm_90+; restrict : 8.6 sm_90+; sem=acquire,release : 8.6 sm_90+ |
fence.restrict | sem=acquire,release restrict=sync_restrict::shared::cluster,sync_restrict::shared::cta scope=$SCOPE | | 8.6 sm_90+ |
fence.alias | alias sem?=sc,acq_rel,acquire,release restrict=sync_restrict::read,sync_restrict::reads scope?=$SCOPE | | 9.5 sm_90+ | restrict > sem & scope
fence.mbarrier | mbarrier_init sem=release scope=cluster | | 8.0 sm_90+ |
fence.proxy | proxy kind=alias,async,async::generic,async::generic_fabric,generic_fabric space?=global,shared::cta,shared::cluster sem?=acquire,release restrict?=sync_restrict::shared::cluster,sync_restrict::shared::cta,sync_restrict::reads scope?=$SCOPE | | kind=alias : 7.5 sm_70+; kind=async,async::generic : 8.0 sm_90+; restrict : 8.6 sm_90+ |
fence.tensormap.release | proxy kind=tensormap::generic sem=release scope=$SCOPE | | 8.3 sm_90+ |
fence.tensormap | proxy kind=tensormap::generic sem=acquire scope=$SCOPE | a i | 8.3 sm_90+ |
fence.proxy.other | proxy rest=tensormap::generic,tensormap | a? i? | 8.3 sm_90+ |
atom | async? sem?=$SEM noftz? scope?=$SCOPE space?=$ASPACE op=and,or,xor,exch,add,inc,dec,min,max noftz? hint?=L2::cache_hint vec?=v2,v4,v8 type=b32,b64,b128,u32,u64,s32,s64,f32,f64,f16,f16x2,bf16,bf16x2 | _d=type@vec a s=type@vec s=u64?hint | $AFLOOR | op=and,or,xor > type=b32,b64; op=inc,dec > type=u32
atom.cas | sem?=$SEM scope?=$SCOPE space?=$ASPACE op=cas hint?=L2::cache_hint type=b16,b32,b64,b128,u32,u64,s32,s64 | _d=type a s=type s=type s=u64?hint | $AFLOOR |
red | sem?=relaxed,release noftz? scope?=$SCOPE space?=$ASPACE op=and,or,xor,add,inc,dec,min,max noftz? hint?=L2::cache_hint vec?=v2,v4,v8 type=b32,b64,u32,u64,s32,s64,f32,f64,f16,f16x2,bf16,bf16x2 | a s=type@vec s=u64?hint | $AFLOOR | op=and,or,xor > type=b32,b64; op=inc,dec > type=u32
red.async | async order?=mmio,release,relaxed mbar?=mbarrier::complete_tx::bytes scope?=$SCOPE space?=shared::cluster,shared::cta,global op=inc,dec,min,max,add,and,or,xor type=u32,s32,u64,s64,b32,b64 | a s=type a? | 8.1 sm_90+ |
vote | sync mode=all,any,uni pred | q p s=b32 | |
vote.ballot | sync mode=ballot b32 | d=b32 p s=b32 | |
vote.nosync | mode=all,any,uni pred | q p | |
vote.ballot.nosync | mode=ballot b32 | d=b32 p | |
match.any | mode=any sync type=b32,b64 | d=b32 s=type s=b32 | 6.0 sm_70+ |
match.all | mode=all sync type=b32,b64 | _D=b32 s=type s=u32 | 6.0 sm_70+ |
activemask | b32 | d=b32 | 6.2 |
redux | sync op=add,min,max type=u32,s32 | d=type s=type s=b32 | 7.0 sm_80+ |
redux.bits | sync op=and,or,xor b32 | d=u32 s=u32 s=u32 | 7.0 sm_80+ |
redux.f32 | sync op=min,max abs? NaN? f32 | d=f32 s=f32 s=b32 | 8.6 sm_100f sm_103f sm_107f |
elect | sync | _D=b32 s=b32 | 8.0 sm_90+ |
griddepcontrol | op=launch_dependents,wait | | 7.8 sm_90+ |
setmaxnreg | op=inc,dec sync aligned u32 | i | 8.0 sm_90a sm_100f sm_103f sm_107f sm_110f sm_120f |
$MSPACE = shared,shared::cta
mbarrier.init | init space?=$MSPACE layout?=layout::v0,layout::v1,layout::b64 b64 | a s=u32 | 7.0 sm_80+ |
mbarrier.inval | inval space?=$MSPACE b64 | a | 7.0 sm_80+ |
mbarrier.tx | op=expect_tx,complete_tx sem?=relaxed scope?=cta,cluster space?=$MSPACE,shared::cluster b64 | a s=u32 | 8.0 sm_90+ |
mbarrier.arrive | op=arrive,arrive_drop expect_tx? noComplete? sem?=release,relaxed scope?=cta,cluster space?=$MSPACE,shared::cluster b64 | _d=b64 a s=u32? | 7.0 sm_80+; expect_tx : 8.0 sm_90+; scope : 8.0 sm_90+; space=shared::cluster : 8.0 sm_90+ |
mbarrier.arrive.more | op=arrive,arrive_drop rest1?=expect_tx,noComplete sem?=release,relaxed scope?=cta,cluster mc=multicast::cluster,multicast::cluster::all,multicast::32b space?=$MSPACE,shared::cluster b64 | any any any? any? | 9.3 sm_90+ |
mbarrier.wait | op=test_wait,try_wait parity? sem?=acquire,relaxed scope?=cta,cluster phase?=phase_type::parity,phase_type::state space?=$MSPACE b64 | q a s=b64 s=u32? | 7.0 sm_80+; op=try_wait : 7.8 sm_90+; scope : 8.0 sm_90+; sem=relaxed : 8.0 sm_90+ | -parity > b64
mbarrier.parity | op=test_wait,try_wait parity sem?=acquire,relaxed scope?=cta,cluster space?=$MSPACE b64 | q a s=u32 s=u32? | 7.1 sm_80+; op=try_wait : 7.8 sm_90+; scope : 8.0 sm_90+; sem=relaxed : 8.0 sm_90+ |
mbarrier.pending | pending_count b64 | d=u32 s=b64 | 7.0 sm_80+ |
mbarrier.check | check_layout space?=$MSPACE layout?=layout::v0,layout::v1,layout::b64 b64? | any any any? any? | 9.3 sm_90+ |
clusterlaunchcontrol.try | try_cancel async space?=shared::cta mbarrier::complete_tx::bytes mc?=multicast::cluster::all b128 | a a | 8.6 sm_100+ |
clusterlaunchcontrol.is | query_cancel is_canceled pred b128 | q s=b128 | 8.6 sm_100+ |
clusterlaunchcontrol.first | query_cancel get_first_ctaid v4 type=b32 b128 | V=b32 s=b128 | 8.6 sm_100+ |
clusterlaunchcontrol.dim | query_cancel dim=get_first_ctaid::x,get_first_ctaid::y,get_first_ctaid::z type=b32 b128 | d=b32 s=b128 | 8.6 sm_100+ |
$MSEM = weak,relaxed,acquire,release
$MTYPE = b32,b64,u32,u64,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64,e4m3,e5m2,e4m3x2,e5m2x2,e4m3x4,e5m2x4
multimem.ld_reduce | ld_reduce sem?=$MSEM scope?=$SCOPE space?=global op=min,max,add,and,or,xor acc?=acc::f32,acc::f16 vec?=v2,v4,v8 type=$MTYPE | any a | 8.1 sm_90+ |
multimem.st | st sem?=$MSEM scope?=$SCOPE space?=global vec?=v2,v4,v8 type=$MTYPE | a any | 8.1 sm_90+ |
multimem.red | red sem?=$MSEM scope?=$SCOPE space?=global op=min,max,add,and,or,xor vec?=v2,v4,v8 type=$MTYPE | a any | 8.1 sm_90+ |
multimem.async | word=st,red async sem?=release,relaxed scope?=$SCOPE space?=global op?=min,max,add,and,or,xor,inc,dec vec?=v2,v4 type=$MTYPE,b128 | a any | 9.3 sm_100+ |
multimem.bulk | cp reduce? async bulk mech?=bulk_group dst?=global src?=shared::cta,shared::cluster l2hint?=L2::cache_hint mask?=cp_mask op?=and,or,xor,add,inc,dec,min,max noftz? type?=f16,bf16,b32,u32,s32,b64,u64,s64,f32,f64 | a a s=u32 any? any? | 9.1 sm_90+ |
fabric | op=submit,wait,try_get,try_put,try_red,try_pullred,try_atom,get,put,red *| any? any? any? any? any? any? any? any? | 9.3 sm_100+ |
""")
