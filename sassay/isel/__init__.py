"""sassay.isel"""
