"""Reading the calibrated policy's threshold from the file that the settings name. Knows no gate rules."""

from __future__ import annotations

from core.gate import Calibration
from core.settings import Settings
from library.errors import FormatError, UsageError


def read_calibration(settings: Settings) -> Calibration | None:
    """The threshold, or None if no file is set. Raises `UsageError` for one that cannot be read."""
    path = settings.calibration
    if path is None:
        return None
    try:
        return Calibration.from_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the calibration file {path}: {error.strerror}") from error
    except (FormatError, ValueError, KeyError) as error:
        raise UsageError(f"{path} is not a calibration file: {error}") from error
