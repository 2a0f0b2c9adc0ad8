"""sassay.isa.timing"""
