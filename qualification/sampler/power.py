"""Energy counters of the processor packages (RAPL), as the kernel shows them below `/sys/class/powercap`."""

from __future__ import annotations

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class PackageEnergy:
    """The packages' counters, summed, with wrap-arounds taken out; None where they cannot be read.

    `absent` says why there is nothing to read, None where there is. Sub-zones (cores, memory) are left out: a package
    counts its cores already, and what lies outside of it is not told on every machine.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        zones = [zone for zone in sorted(root.glob("intel-rapl:[0-9]*")) if zone.name.count(":") == 1]
        self._zones = [zone for zone in zones if (zone / "energy_uj").exists()]
        self._last = [0] * len(self._zones)
        self._wrapped = [0] * len(self._zones)
        self.absent = self._why_absent(root)

    @property
    def zones(self) -> tuple[str, ...]:
        """Names of the zones that are summed."""
        return tuple(zone.name for zone in self._zones) if self.absent is None else ()

    def read(self) -> int | None:
        """Microjoules since an arbitrary zero."""
        if not self._zones:
            return None
        try:
            return sum(self._read_zone(number) for number in range(len(self._zones)))
        except (OSError, ValueError):
            return None

    def _read_zone(self, number: int) -> int:
        zone = self._zones[number]
        now = int((zone / "energy_uj").read_text())
        if now < self._last[number]:
            self._wrapped[number] += int((zone / "max_energy_range_uj").read_text())
        self._last[number] = now
        return now + self._wrapped[number]

    def _why_absent(self, root: Path) -> str | None:
        if not root.is_dir():
            return "the kernel shows no powercap directory"
        if not self._zones:
            return "powercap lists no processor package with a counter"
        return None if self.read() is not None else "the counters cannot be read; the kernel lets root alone do so"
