from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from core.energy import NOT_METERED, decode_flops, measure, source


@pytest.fixture(autouse=True)
def no_optional_meters(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("zeus", "zeus.monitor", "pynvml", "zeus_apple_silicon"):
        monkeypatch.setitem(sys.modules, name, None)


def zone(folder: Path, name: str, energy: int, wraps_at: int = 10_000_000) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "energy_uj").write_text(f"{energy}\n")
    (path / "max_energy_range_uj").write_text(f"{wraps_at}\n")
    return path


def test_rapl_adds_packages_and_not_their_parts(tmp_path: Path) -> None:
    first, second = zone(tmp_path, "intel-rapl:0", 1_000_000), zone(tmp_path, "intel-rapl:1", 5_000_000)
    part = zone(tmp_path, "intel-rapl:0:0", 0)
    with measure("cpu", powercap=tmp_path) as reading:
        (first / "energy_uj").write_text("3500000")
        (second / "energy_uj").write_text("5500000")
        (part / "energy_uj").write_text("9000000")
    assert reading.energy.source == "rapl"
    assert reading.energy.joules == pytest.approx(3.0)
    assert reading.energy.seconds >= 0


def test_rapl_counter_wraps(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", 9_999_999, wraps_at=9_999_999)
    with measure("cpu", powercap=tmp_path) as reading:
        (package / "energy_uj").write_text("1999999")
    assert reading.energy.joules == pytest.approx(2.0)


@pytest.mark.parametrize("device", ["cpu", "cuda", "mps", "toaster"])
def test_nothing_to_read_is_not_metered(tmp_path: Path, device: str) -> None:
    with measure(device, powercap=tmp_path) as reading:
        pass
    assert reading.energy.joules is None
    assert reading.energy.source == NOT_METERED
    assert source(device, powercap=tmp_path) == NOT_METERED


def test_a_counter_that_vanishes_is_not_metered(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", 1)
    with measure("cpu", powercap=tmp_path) as reading:
        (package / "energy_uj").write_text("garbage")
    assert (reading.energy.joules, reading.energy.source) == (None, NOT_METERED)


def test_rapl_never_stands_for_a_gpu(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 1)
    assert source("cuda", powercap=tmp_path) == NOT_METERED
    assert source("cpu", powercap=tmp_path) == "rapl"


def test_nvml_reads_the_first_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for pynvml: two readings of 1.0 J and 3.5 J."""
    readings = iter([1000, 3500])
    closed: list[bool] = []
    fake = types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(readings),
        nvmlShutdown=lambda: closed.append(True),
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with measure("cuda") as reading:
        pass
    assert reading.energy.source == "nvml"
    assert reading.energy.joules == pytest.approx(2.5)
    assert closed == [True]


@pytest.mark.parametrize(("device", "joules"), [("cpu", 3.25), ("mps", 7.25), ("cuda", None)])
def test_apples_chip_counts_the_parts_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, joules: float | None
) -> None:
    """A stand-in for zeus_apple_silicon on a chip that does not count its GPU's memory."""
    metrics = types.SimpleNamespace(cpu_total_mj=3000, dram_mj=250, gpu_mj=4000, gpu_sram_mj=None, ane_mj=9000)
    monitor = types.SimpleNamespace(begin_window=lambda label: None, end_window=lambda label: metrics)
    fake = types.SimpleNamespace(AppleEnergyMonitor=lambda: monitor)
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", fake)
    with measure(device, powercap=tmp_path) as reading:
        pass
    assert reading.energy.joules == (None if joules is None else pytest.approx(joules))
    assert reading.energy.source == ("apple" if joules else NOT_METERED)


def test_an_exception_passes_and_is_metered(tmp_path: Path) -> None:
    with pytest.raises(KeyError), measure("cpu", powercap=tmp_path) as reading:
        raise KeyError("x")
    assert reading.energy.seconds >= 0


def test_reading_inside_the_block_raises(tmp_path: Path) -> None:
    with measure("cpu", powercap=tmp_path) as reading, pytest.raises(RuntimeError, match="still running"):
        _ = reading.energy


@pytest.mark.parametrize(
    ("arguments", "flops"),
    [
        ((1000, 1, 0, 0, 0, 0), 2000),
        ((0, 1, 1, 1, 1, 0), 4),  # one token attends to itself
        ((0, 2, 1, 1, 1, 10), 4 * (11 + 12)),
        ((134_515_008, 100, 30, 9, 64, 73), 2 * 134_515_008 * 100 + 4 * 30 * 9 * 64 * (7300 + 5050)),
        ((10, 0, 5, 5, 5, 100), 0),
    ],
)
def test_decode_flops(arguments: tuple[int, int, int, int, int, int], flops: int) -> None:
    assert decode_flops(*arguments) == flops


def test_decode_flops_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="zero or more"):
        decode_flops(1, -1, 1, 1, 1, 1)
