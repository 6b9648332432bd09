"""The exceptions of the project, one tree, each with the command line's exit code.

A refusal (the gate's REFUSE, a failed check) is a value with reasons, never one of these.

    ScionError                      1
    ├── UsageError                  2   bad input, setting or combination of options
    ├── NotFound                    1   no such record, file or key
    ├── Conflict                    1   the record is not in a state that allows this
    │   └── StaleVersion            1   it changed since the caller read it
    ├── Cancelled                   1   somebody asked the job to stop
    ├── ModelError                  1   a model cannot be loaded or used
    │   ├── UnknownModel            1
    │   ├── ContextOverflow         2   prompt plus budget exceed the context window
    │   ├── IdentityMismatch        1   the state belongs to another model; names the fields
    │   └── UnsupportedState        1   a cache layer kind or attribute we do not know
    ├── StoreError                  1   the library cannot do its work
    │   ├── LibraryBusy             1   another process holds it
    │   ├── LibraryTooNew           1   made by a newer version
    │   ├── NotWritable             1   permissions
    │   └── StorageFull             1   disk or quota
    ├── CorruptError                3   bytes are not what they should be
    │   ├── FormatError             3   not a canonical artifact or bundle
    │   ├── DigestMismatch          3   content differs from its name
    │   └── MissingBlob             3   a row without its bytes
    └── UntrustedError              4   a signature is missing, wrong or from an unknown key
"""

from __future__ import annotations

from collections.abc import Mapping


class ScionError(Exception):
    """Base of all errors that are raised on purpose; its text says what happened and the way out."""

    exit_code = 1


class UsageError(ScionError):
    exit_code = 2


class NotFound(ScionError):
    pass


class Conflict(ScionError):
    pass


class StaleVersion(Conflict):
    pass


class Cancelled(ScionError):
    pass


class ModelError(ScionError):
    pass


class UnknownModel(ModelError):
    pass


class ContextOverflow(ModelError):
    exit_code = 2


class IdentityMismatch(ModelError):
    """`fields` maps each differing identity field to (what the artifact needs, what is loaded)."""

    def __init__(self, fields: Mapping[str, tuple[object, object]]) -> None:
        self.fields = dict(fields)
        named = "; ".join(f"{k}: artifact has {a!r}, model has {b!r}" for k, (a, b) in self.fields.items())
        super().__init__(f"the artifact belongs to another model ({named}); load the model it was made with")


class UnsupportedState(ModelError):
    pass


class StoreError(ScionError):
    pass


class LibraryBusy(StoreError):
    pass


class LibraryTooNew(StoreError):
    pass


class NotWritable(StoreError):
    pass


class StorageFull(StoreError):
    pass


class CorruptError(ScionError):
    exit_code = 3


class FormatError(CorruptError):
    pass


class DigestMismatch(CorruptError):
    pass


class MissingBlob(CorruptError):
    pass


class UntrustedError(ScionError):
    exit_code = 4
