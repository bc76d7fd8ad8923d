"""Outlier detectors: which rows are strange, without clusters."""

from corral.detectors._cof import COF
from corral.detectors._fast_abod import FastABOD
from corral.detectors._holoentropy import Holoentropy
from corral.detectors._iforest import IForest
from corral.detectors._ldof import LDOF
from corral.detectors._lof import LOF
from corral.detectors._opca import OPCA
from corral.detectors._tonmf import TONMF

__all__ = [
    "COF",
    "LDOF",
    "LOF",
    "OPCA",
    "TONMF",
    "FastABOD",
    "Holoentropy",
    "IForest",
]
