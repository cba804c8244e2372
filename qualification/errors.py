"""Everything the harness can refuse, in one tree; one exit code a family.

    QualificationError               exit 1   a fault of the harness itself
    ├── UsageError                   exit 2   the command line asks for something impossible
    ├── InputError                   exit 3   pins, policy, workload or a model directory cannot be used
    │   ├── StrictJsonError                   not the JSON that we accept
    │   ├── SchemaError                       JSON of the wrong shape
    │   └── ResumeRefused                     a run would go on as another one than it was
    ├── SubjectError                 exit 4   the engine under test did not start, answer or survive
    ├── BundleError                  exit 5   an evidence directory cannot be written or read
    ├── SigningError                 exit 6   a key or an envelope cannot be used
    ├── NotQualified                 exit 7   the evidence is sound and the verdict is `not_qualified`
    ├── RefusedBundle                exit 8   the verifier refuses the evidence
    ├── Incomplete                   exit 9   the evidence is sound, and only a subset of the gates was asked for
    ├── WorseThanAllowed             exit 16  a comparison says: worse by more than the limit
    └── Undecided                    exit 17  a comparison cannot tell whether the limit holds

Only `main()` turns these into exit codes. The verifier itself raises nothing for a bad bundle: it returns findings.
"""

from __future__ import annotations


class QualificationError(Exception):
    """Base of every deliberate refusal. `exit_code` is the process exit status of the family."""

    exit_code = 1


class UsageError(QualificationError):
    """The command line asks for something impossible."""

    exit_code = 2


class InputError(QualificationError):
    """An input of the run is missing, malformed or contradicts another."""

    exit_code = 3


class StrictJsonError(InputError):
    """A text is not the strict JSON that the harness accepts."""


class SchemaError(InputError):
    """A document does not have the shape that its schema demands."""


class ResumeRefused(InputError):
    """A run cannot go on in its directory, because something is not what it was when it began."""


class SubjectError(QualificationError):
    """The engine under test did not start, answer or survive."""

    exit_code = 4


class BundleError(QualificationError):
    """An evidence directory cannot be written or read."""

    exit_code = 5


class SigningError(QualificationError):
    """A key or an envelope cannot be used."""

    exit_code = 6


class NotQualified(QualificationError):
    """The evidence is sound and the verdict is `not_qualified`."""

    exit_code = 7


class Incomplete(QualificationError):
    """The evidence is sound, no gate of the subset that was asked for fell short, and a subset can never qualify."""

    exit_code = 9


class RefusedBundle(QualificationError):
    """The verifier refuses the evidence."""

    exit_code = 8


class WorseThanAllowed(QualificationError):
    """A comparison says that a figure is worse by more than the limit."""

    exit_code = 16


class Undecided(QualificationError):
    """A comparison cannot tell whether the limit holds; a release gate must not pass on that."""

    exit_code = 17
