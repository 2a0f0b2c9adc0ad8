"""sassay.isa"""
