"""sassay.emu"""
