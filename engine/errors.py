"""Everything the engine can refuse, in one tree.

    EngineError                      exit 1
    ├── UsageError                   exit 2   the command line or configuration is wrong
    ├── ModelError                   exit 3   the model directory cannot be used
    ├── RequestError                 exit 4   one request is refused; carries a wire code
    │   ├── InvalidRequest                    a field breaks its rule (HTTP 422)
    │   ├── RequestIdInUse                    the id belongs to a live request (HTTP 409)
    │   ├── CapacityExhausted                 every slot is taken (HTTP 429)
    │   └── EngineUnavailable                 not ready, failed or shutting down (HTTP 503)
    └── DeviceError                  exit 5   the accelerator cannot run this configuration

Only `main()` turns these into exit codes; the server turns `RequestError.code` into a problem document.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of every deliberate refusal. `exit_code` is the process exit status of the family."""

    exit_code = 1


class UsageError(EngineError):
    """The command line or the configuration asks for something impossible."""

    exit_code = 2


class ModelError(EngineError):
    """The model directory is missing, incomplete, altered or of another type."""

    exit_code = 3


class RequestError(EngineError):
    """One request is refused. `code` is the wire code of the HTTP contract, `detail` names the mend."""

    exit_code = 4

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class InvalidRequest(RequestError):
    """A field of the request breaks its rule."""


class RequestIdInUse(RequestError):
    """Another live request has the same id."""

    def __init__(self, request_id: object) -> None:
        super().__init__("request_id_in_use", f"request {request_id} is still active; use a new x-request-id")


class CapacityExhausted(RequestError):
    """Every slot is taken; nothing is queued beyond the slots."""

    def __init__(self, slots: int) -> None:
        super().__init__("capacity_exhausted", f"all {slots} slots are busy; retry after a stream has ended")


class EngineUnavailable(RequestError):
    """The engine is starting, has failed or is shutting down."""


class DeviceError(EngineError):
    """The accelerator is absent, too small or refuses a declared graph."""

    exit_code = 5
