"""sassay.runtime"""
