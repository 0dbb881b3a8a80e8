"""Probes: read the confidence from the model's hidden states."""

from capcal_lib.probes.linear import LinearProbe

__all__ = ["LinearProbe"]
