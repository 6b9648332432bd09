"""What a run costs: joules where the machine can be metered, seconds always, and an estimate in FLOPs.

The source of a figure is part of it, and "not metered" is an honest one. It must not know models or jobs; it
imports no torch, and optional meters (zeus, pynvml) only when a measurement begins.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

NOT_METERED = "not metered"
_POWERCAP = Path("/sys/class/powercap")
_MICROJOULES = 1e-6
_MILLIJOULES = 1e-3


@dataclass(frozen=True)
class Energy:
    """`joules` of what `source` names ("zeus", "rapl", "nvml", "apple"), None if "not metered"; wall `seconds`.

    "rapl" counts whole processor packages, "nvml" a whole GPU and "apple" a whole chip, other work on them included.
    """

    joules: float | None
    source: str
    seconds: float


class Reading:
    """Holds the `Energy` of a `measure` block once the block has ended, by an exception too."""

    def __init__(self) -> None:
        self._energy: Energy | None = None

    @property
    def energy(self) -> Energy:
        """Raises `RuntimeError` inside the block, when there is nothing to read yet."""
        if self._energy is None:
            raise RuntimeError("the measurement is still running; read it after its block")
        return self._energy


class Meter(Protocol):
    """`start` returns whatever `joules` needs to give the energy since then; joules may be None: not known."""

    source: str

    def start(self) -> Any: ...

    def joules(self, started: Any) -> float | None: ...


@contextlib.contextmanager
def measure(device_kind: str, *, powercap: Path = _POWERCAP) -> Iterator[Reading]:
    """Meters a block on a device of kind "cpu", "cuda" or "mps"; `powercap` is where Linux shows RAPL.

    A meter that is missing, unreadable or fails gives "not metered", never an exception.
    """
    reading = Reading()
    meter: Meter | None = None
    mark: Any = None
    for candidate in _meters(device_kind, powercap):
        try:
            mark = candidate.start()
        except Exception:  # a driver or library that does not work here is no reason to stop a solve
            continue
        meter = candidate
        break
    begun = time.perf_counter()
    try:
        yield reading
    finally:
        seconds = time.perf_counter() - begun
        joules: float | None = None
        if meter is not None:
            with contextlib.suppress(Exception):
                joules = meter.joules(mark)
        source = meter.source if meter is not None and joules is not None else NOT_METERED
        reading._energy = Energy(joules, source, seconds)


def source(device_kind: str, *, powercap: Path = _POWERCAP) -> str:
    """What `measure` would use here: "zeus", "rapl", "nvml" or "not metered"."""
    with measure(device_kind, powercap=powercap) as reading:
        pass
    return reading.energy.source


def decode_flops(parameters: int, tokens: int, layers: int, heads: int, head_dim: int, context: int) -> int:
    """FLOPs to decode `tokens` tokens one by one behind `context` tokens, an estimate.

    A token costs 2 P for the weights (a multiplication and an addition each) and, in each layer, 4 h d c for
    attention over c cached positions: 2 h d c for the scores and 2 h d c for the weighted sum of values. That
    is the forward pass of Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1, with
    n_ctx as the positions there really are: the i-th token (from 0) attends to context + i + 1. Norms,
    softmax and sampling are left out; a sliding window makes it an upper bound. `heads` are the query heads.
    Raises `ValueError` for a negative count.
    """
    if min(parameters, tokens, layers, heads, head_dim, context) < 0:
        raise ValueError("FLOPs need counts of zero or more")
    positions = tokens * context + tokens * (tokens + 1) // 2
    return 2 * parameters * tokens + 4 * layers * heads * head_dim * positions


def _meters(device_kind: str, powercap: Path) -> list[Meter]:
    """The candidates in order of preference. RAPL cannot see a GPU, so it is no meter of one."""
    if device_kind == "cuda":
        return [_Zeus(device_kind), _Nvml()]
    if device_kind == "cpu":
        return [_Zeus(device_kind), _Rapl(powercap), _Apple(device_kind)]
    return [_Apple(device_kind)] if device_kind == "mps" else []


class _Zeus:
    source = "zeus"

    def __init__(self, device_kind: str) -> None:
        self._device_kind = device_kind
        self._monitor: Any = None

    def start(self) -> Any:
        from zeus.monitor import ZeusMonitor

        # The other device is switched off: a reading of "cpu" must not hold a GPU's idle power.
        gpus: list[int] = [0] if self._device_kind == "cuda" else []
        self._monitor = ZeusMonitor(gpu_indices=gpus)
        if self._device_kind == "cpu" and not self._monitor.cpu_indices:
            raise RuntimeError("zeus sees no processor meter")
        self._monitor.begin_window("scion")
        return None

    def joules(self, started: Any) -> float | None:
        result = self._monitor.end_window("scion")
        by_device = result.gpu_energy if self._device_kind == "cuda" else result.cpu_energy
        return float(sum(by_device.values())) if by_device else None


class _Rapl:
    """Running average power limit counters, in microjoules, one a package; they wrap at `max_energy_range_uj`."""

    source = "rapl"

    def __init__(self, powercap: Path) -> None:
        self._powercap = powercap

    def start(self) -> dict[Path, tuple[int, int]]:
        # "intel-rapl:0" is a package; "intel-rapl:0:1" is a part of it and would be counted twice.
        zones = [zone for zone in sorted(self._powercap.glob("intel-rapl:*")) if zone.name.count(":") == 1]
        counters = {zone: (_number(zone / "energy_uj"), _number(zone / "max_energy_range_uj")) for zone in zones}
        if not counters:
            raise FileNotFoundError("no RAPL package")
        return counters

    def joules(self, started: dict[Path, tuple[int, int]]) -> float | None:
        total = 0
        for zone, (before, wraps_at) in started.items():
            spent = _number(zone / "energy_uj") - before
            total += spent if spent >= 0 else spent + wraps_at + 1
        return total * _MICROJOULES


class _Nvml:
    """The GPU's own total, in millijoules since the driver was loaded (Volta and later), of the first GPU."""

    source = "nvml"

    def start(self) -> tuple[Any, Any, int]:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        return pynvml, handle, int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))

    def joules(self, started: tuple[Any, Any, int]) -> float | None:
        pynvml, handle, before = started
        try:
            spent = int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) - before
            return spent * _MILLIJOULES if spent >= 0 else None
        finally:
            pynvml.nvmlShutdown()


class _Apple:
    """The counters of Apple's chips, in millijoules, by zeus' package for them: processor and memory, and the GPU if
    the model runs there."""

    source = "apple"

    def __init__(self, device_kind: str) -> None:
        self._parts = ("cpu_total_mj", "dram_mj", *(("gpu_mj", "gpu_sram_mj") if device_kind == "mps" else ()))

    def start(self) -> Any:
        from zeus_apple_silicon import AppleEnergyMonitor

        monitor = AppleEnergyMonitor()
        monitor.begin_window("scion")
        return monitor

    def joules(self, started: Any) -> float | None:
        metrics = started.end_window("scion")
        found = [getattr(metrics, name, None) for name in self._parts]  # a chip need not have every counter
        counted = [value for value in found if value is not None]
        return sum(counted) * _MILLIJOULES if counted else None


def _number(path: Path) -> int:
    return int(path.read_text(encoding="ascii").strip())
