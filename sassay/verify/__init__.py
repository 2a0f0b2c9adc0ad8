"""sassay.verify"""
