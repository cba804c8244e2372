"""RAPL counters from a directory that looks like the kernel's."""

from __future__ import annotations

from pathlib import Path

from qualification.sampler.power import PackageEnergy


def zone(root: Path, name: str, microjoules: int, *, largest: int = 1_000) -> Path:
    """A zone as powercap shows it."""
    place = root / name
    place.mkdir(parents=True)
    (place / "max_energy_range_uj").write_text(f"{largest}\n")
    (place / "energy_uj").write_text(f"{microjoules}\n")
    return place


def test_packages_are_summed_and_their_parts_are_not(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 900)
    zone(tmp_path, "intel-rapl:1", 50)
    zone(tmp_path, "intel-rapl:0:0", 500)
    energy = PackageEnergy(tmp_path)
    assert (energy.read(), energy.zones, energy.absent) == (950, ("intel-rapl:0", "intel-rapl:1"), None)


def test_a_counter_that_wraps_around_goes_on(tmp_path: Path) -> None:
    place = zone(tmp_path, "intel-rapl:0", 900)
    energy = PackageEnergy(tmp_path)
    assert energy.read() == 900
    (place / "energy_uj").write_text("50\n")
    assert energy.read() == 1_050
    (place / "energy_uj").write_text("20\n")
    assert energy.read() == 2_020


def test_counters_that_are_not_there_or_closed_are_none_with_a_reason(tmp_path: Path) -> None:
    missing = PackageEnergy(tmp_path / "none")
    assert (missing.read(), missing.zones) == (None, ())
    assert "no powercap directory" in str(missing.absent)
    (tmp_path / "intel-rapl:0").mkdir()
    empty = PackageEnergy(tmp_path)
    assert (empty.read(), "no processor package" in str(empty.absent)) == (None, True)
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir()  # there, and cannot be read
    closed = PackageEnergy(tmp_path)
    assert (closed.read(), closed.zones, "cannot be read" in str(closed.absent)) == (None, (), True)
