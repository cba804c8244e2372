"""Our own image for a run: the one that lies there where it is of this very commit, else built now, twice.

An image is taken as it lies only if its report names this commit, both trees are clean, and the shipped model and pins
were asked for; everything else is built again. What is taken is no more trusted than what is built: its digests are
followed by their bytes, and identity comes from the files inside. Not covered: an image with accelerator libraries,
which `nox -s image -- --variant cuda` builds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qualification import schema
from qualification.container import source
from qualification.container.image import LAYOUT, PROVENANCE, SBOM, ImageOrder, make_image
from qualification.container.subject import REPORT
from qualification.digest import sha256_file
from qualification.errors import QualificationError
from qualification.identity import judge, survey
from qualification.paths import PINS, data_file
from qualification.pins import load_pins
from qualification.policy import Policy
from qualification.subject import embedded_model

CHECKOUT: Final = Path(__file__).resolve().parents[2]
VARIANT: Final = "cpu"
PUBLISHED_AT: Final = "urn:assay:source"
_CLEAN: Final = "source.clean"


@dataclass(frozen=True, kw_only=True)
class OwnImage:
    """What is to be in the image. The policy says whether its tier wants a clean tree."""

    model: Path
    pins: Path
    policy: Policy
    checkout: Path = CHECKOUT

    def layout(self) -> Path:
        """The image's layout, with report, bill of materials and provenance beside it.

        Raises:
            ContainerFault: whatever stopped the build.
            InputError: this is no Git checkout, or model or pins cannot be used.
        """
        output = self.checkout / "build" / "container" / VARIANT
        if not self._stands(output):
            make_image(self._order(output))
        return output / LAYOUT

    def _stands(self, output: Path) -> bool:
        """Whether an image of this commit, with the shipped model, lies there complete."""
        if not all((output / name).exists() for name in (LAYOUT, REPORT, SBOM, PROVENANCE)):
            return False
        if self.model.resolve() != embedded_model().resolve() or self.pins.resolve() != data_file(PINS).resolve():
            return False
        try:
            report = schema.load("image-build", output / REPORT)
        except (OSError, QualificationError):
            return False  # a report of another version
        state = source.source_state(self.checkout)
        same = report["source"]["commit"] == state.commit and not (report["source"]["dirty"] or state.dirty)
        return same and report["pins_sha256"] == sha256_file(self.pins) and len(report["builds"]) > 1

    def _order(self, output: Path) -> ImageOrder:
        return ImageOrder(
            checkout=self.checkout,
            output=output,
            variant=VARIANT,
            model=self.model,
            pins=self.pins,
            engine=self.checkout / "engine",
            locks=self.checkout / "locks",
            wheels=self.checkout / "wheelhouse",
            repository=PUBLISHED_AT,
            builds=2,
            clean=self._wants_clean(),
        )

    def _wants_clean(self) -> bool:
        pins = load_pins(self.pins)
        tier = judge(survey(self.model, pins), pins).tier
        return _CLEAN in self.policy.rules_for(tier).required
