"""sassay.isa.semantics"""
