"""sassay.sass"""
