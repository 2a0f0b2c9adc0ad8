"""sassay: PTX to proved cubins for NVIDIA Hopper and Blackwell."""

__version__ = "0.1.0"
