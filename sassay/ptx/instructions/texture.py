# ruff: noqa: E501 (a table)
"""Textures and surfaces. Source: PTX ISA 9.5 chapters "Texture instructions" and "Surface instructions"."""

from __future__ import annotations

from sassay.ptx.instructions.entry import table

ROWS = table("""
$GEOM = 1d,2d,3d,a1d,a2d,cube,acube,2dms,a2dms
$TTYPE = u32,s32,f32,f16,f16x2
tex | mip?=level,grad,base geom=$GEOM vec=v2,v4 dtype=$TTYPE ctype=s32,f32 | V=dtype B any? any? any? any? | | vec=v2 > dtype=f16x2
tex.scalar | mip?=level,grad,base geom=$GEOM dtype=f16x2 ctype=s32,f32 | V=dtype B any? any? any? | |
tld4 | comp=r,g,b,a geom=2d,a2d,cube,acube vec=v4 dtype=u32,s32,f32 ctype=f32 | V=dtype B any? any? | |
txq | level? query=width,height,depth,channel_data_type,channel_order,normalized_coords,array_size,num_mipmap_levels,num_samples,force_unnormalized_coords,filter_mode,addr_mode_0,addr_mode_1,addr_mode_2 b32 | d=b32 B any? | |
suq | query=width,height,depth,channel_data_type,channel_order,array_size,memory_layout b32 | d=b32 B | |
istypep | type=texref,samplerref,surfref | q any | |
$SGEOM = 1d,2d,3d,a1d,a2d
suld | fmt=b geom=$SGEOM cop?=ca,cg,cs,cv vec?=v2,v4 dtype=b8,b16,b32,b64 clamp=trap,clamp,zero | any B | |
sust | fmt=b,p geom=$SGEOM cop?=wb,cg,cs,wt vec?=v2,v4 dtype=b8,b16,b32,b64,u32,s32,f32 clamp=trap,clamp,zero | B any | |
sured | fmt=b,p op=add,min,max,and,or geom=$SGEOM dtype=u32,u64,s32,s64,b32,b64 clamp=trap,clamp,zero | B any | |
""")
