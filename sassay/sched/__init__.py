"""sassay.sched"""
