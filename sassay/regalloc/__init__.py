"""sassay.regalloc"""
