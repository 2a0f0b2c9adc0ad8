"""sassay.ptx"""
