"""sassay.bench"""
