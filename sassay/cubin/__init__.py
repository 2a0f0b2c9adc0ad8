"""sassay.cubin"""
