"""Any order of deposit, find, read, damage, revoke, hold, import, pack, gc, evict, restart keeps the promises.

The model beside it is a few dictionaries; Hypothesis looks for a sequence of steps after which the two differ.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from library.blobs import blob_path, packed_path
from library.check import check
from library.digest import Digest
from library.errors import Conflict, DigestMismatch, StorageFull
from library.gc import collect
from library.store import Library
from library.tables import Artifact, Outcome
from tests.library.stores import IDENTITY, approved, key_of, record_of, state_of

TEXTS = [f"problem {letter}" for letter in "abcde"]
SIZE = 400
text_of = st.sampled_from(TEXTS)


class LibraryMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.root = self.folder / "lib"
        self.library = Library.open(self.root)
        self.state: dict[str, str] = {}  # text -> state of its artifact
        self.damaged: set[str] = set()
        self.log_size = 0

    def teardown(self) -> None:
        self.library.close()
        shutil.rmtree(self.folder)

    def _digest(self, text: str) -> str:
        return str(state_of(text, SIZE).digest)

    def _row(self, text: str) -> Artifact:
        return self.library.artifact(self._digest(text))

    @rule(text=text_of)
    def deposit(self, text: str) -> None:
        before = self.state.get(text)
        attempt = approved(self.library, text, SIZE) if before is None else self._row(text).attempt_id
        try:
            row = self.library.publish(attempt or approved(self.library, text), state_of(text, SIZE), record_of(text))
        except Conflict:
            assert before in ("revoked", "quarantined", "imported")
            return
        assert before not in ("revoked", "quarantined", "imported")
        self.damaged.discard(text)
        if before in (None, "evicted"):
            self.state[text] = "published"
        assert row.state == self.state[text]

    @rule(text=text_of, accept=st.booleans())
    def import_one(self, text: str, accept: bool) -> None:
        row = self.library.land_import(state_of(text, SIZE), record_of(text), origin="bundle", actor="bob")
        known = self.state.get(text)
        if known is not None and known != "imported":
            assert row.state == known, "an import changed what was there"
            with pytest.raises(Conflict):
                self.library.accept_import([row.digest], "bob")
            return
        self.state[text] = "imported"
        if accept:
            self.library.accept_import([row.digest], "bob")
            self.state[text] = "published"

    @rule(text=text_of)
    def read(self, text: str) -> None:
        if self.state.get(text) not in ("published", "held", "imported"):
            return
        if text in self.damaged:
            with pytest.raises(DigestMismatch):
                self.library.read_blob(self._digest(text))
            self.state[text] = "quarantined"
            self.damaged.discard(text)
        else:
            assert bytes(self.library.read_blob(self._digest(text))) == state_of(text, SIZE).data

    @rule(text=text_of, where=st.integers(0, SIZE - 1))
    def damage(self, text: str, where: int) -> None:
        if self.state.get(text) in ("published", "held", "imported") and text not in self.damaged:
            packed = self._row(text).compression != "none"
            path = self.root / (packed_path if packed else blob_path)(Digest.parse(self._digest(text)))
            data = bytearray(path.read_bytes())
            data[where % len(data)] ^= 1
            path.write_bytes(data)
            self.damaged.add(text)

    @precondition(lambda self: self.state)
    @rule(text=text_of)
    def revoke(self, text: str) -> None:
        if text in self.state:
            self.library.revoke(self._digest(text), reason="wrong", actor="bob")
            self.state[text] = "revoked"
            self.damaged.discard(text)

    @rule(text=text_of)
    def hold(self, text: str) -> None:
        if self.state.get(text) == "published":
            self.library.hold(self._digest(text), "not repeated", "gate")
            self.state[text] = "held"
        elif self.state.get(text) == "held":
            self.library.release_hold(self._digest(text), "looked at", "ada")
            self.state[text] = "published"

    @rule(text=text_of, away=st.booleans())
    def pack_or_unpack(self, text: str, away: bool) -> None:
        if self.state.get(text) in ("published", "held", "imported") and text not in self.damaged:
            digest = self._digest(text)
            row = self.library.pack(digest) if away else self.library.unpack(digest)
            assert row.compression == ("planes-zstd" if away else "none")
            assert (row.stored_bytes < SIZE) == away

    @rule(text=text_of)
    def use(self, text: str) -> None:
        if self.state.get(text) == "published":
            self.library.record_outcome(
                Outcome(
                    id="", query=text, artifact=self._digest(text), policy="strict", verdict="GRAFT", model="m",
                    identity=IDENTITY, created="", created_by="ada",
                )
            )  # fmt: skip

    @rule()
    def evict_one(self) -> None:
        quota = self.library.used_bytes() - 1
        try:
            gone = self.library.evict(quota_bytes=quota)
        except StorageFull:
            assert "published" not in self.state.values()
            return
        texts = {self._digest(text): text for text in TEXTS}
        for digest in gone:
            assert self.state[texts[digest]] == "published"
            self.state[texts[digest]] = "evicted"
            self.damaged.discard(texts[digest])

    @rule()
    def gc(self) -> None:
        collect(self.library, grace=0, revoked_grace=0)

    @rule()
    def restart(self) -> None:
        self.library.close()
        self.library = Library.open(self.root)

    @invariant()
    def only_published_ones_are_found(self) -> None:
        for text in TEXTS:
            found = [row.digest for row in self.library.find_exact(key_of(text))]
            assert found == ([self._digest(text)] if self.state.get(text) == "published" else [])
            if text in self.state:
                assert self._row(text).state == self.state[text]

    @invariant()
    def nothing_dangles(self) -> None:
        damage = check(self.library, read_data=True).damage
        assert {finding.subject for finding in damage} == {self._digest(text) for text in self.damaged}

    @invariant()
    def the_log_only_grows(self) -> None:
        assert self.library.verify_log() is None
        size = self.library.log(1)[0].seq
        assert size >= self.log_size
        self.log_size = size


LibraryMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLibrary = LibraryMachine.TestCase
