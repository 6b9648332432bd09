"""Reading the calibrated policy's threshold from the file that the settings name. Knows no gate rules."""

from __future__ import annotations

from pathlib import Path

from core.gate import Calibration
from core.settings import Settings
from library.errors import FormatError, UsageError


def calibration_path(settings: Settings) -> Path:
    """Where `evaluate calibrate` writes, and where the gate reads: the setting, or a file beside the library."""
    return settings.calibration or settings.library.with_name("calibration.json")


def read_calibration(settings: Settings) -> Calibration | None:
    """The threshold, or None if none is set or was made. Raises `UsageError` for a file that cannot be read."""
    path = calibration_path(settings)
    if settings.calibration is None and not path.exists():
        return None
    try:
        return Calibration.from_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the calibration file {path}: {error.strerror}") from error
    except (FormatError, ValueError, KeyError) as error:
        raise UsageError(f"{path} is not a calibration file: {error}") from error
