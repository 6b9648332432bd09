"""What every part of the engine shares: settings, library, the one loaded model, the calibration.

Knows how the model is loaded once, not what it is used for.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from core.calibrations import read_calibration
from core.gate import Calibration
from core.jobs import Context
from core.settings import Settings
from library.store import Library

if TYPE_CHECKING:  # torch is loaded when a job first needs it
    from core.model import FrozenModel


class Loaded:
    """One process's settings, library and model. Safe to call from any thread."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self.settings, self.library = settings, library
        self._model: FrozenModel | None = None
        self._model_lock = threading.Lock()

    def model(self, context: Context | None = None) -> FrozenModel:
        """The loaded model, loading it first if need be (seconds)."""
        from core.model import load

        with self._model_lock:
            if self._model is None:
                say = (lambda text: context.report(phase="loading model", note=text)) if context else None
                self._model = load(self.settings, say=say)
            return self._model

    @property
    def loaded(self) -> FrozenModel | None:
        return self._model

    def calibration(self) -> Calibration | None:
        """The calibrated policy's threshold from the settings' file, or None."""
        return read_calibration(self.settings)
