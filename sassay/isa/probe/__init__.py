"""sassay.isa.probe"""
