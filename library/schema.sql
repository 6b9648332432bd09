-- Version 1 of a library's schema. Frozen once released: later versions are steps in migrations.py.
-- The tables repeat tables.py (a test compares the two); the triggers hold what no caller may break.

CREATE TABLE audit (
    seq INTEGER NOT NULL,
    created VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    previous VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    PRIMARY KEY (seq)
);

CREATE TABLE book (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    identity VARCHAR NOT NULL,
    segment_tokens INTEGER NOT NULL,
    created VARCHAR NOT NULL,
    created_by VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT state_known CHECK (state IN ('building', 'pending', 'accepted', 'revoked')),
    UNIQUE (name)
);

CREATE TABLE job (
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    payload VARCHAR NOT NULL,
    progress VARCHAR NOT NULL,
    result VARCHAR NOT NULL,
    error VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    worker VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    started VARCHAR,
    finished VARCHAR,
    PRIMARY KEY (id),
    CONSTRAINT state_known CHECK (state IN ('queued', 'running', 'paused', 'done', 'failed', 'cancelled', 'interrupted'))
);
CREATE INDEX job_state ON job (state, created);

CREATE TABLE "key" (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    public VARCHAR NOT NULL,
    trust VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT trust_known CHECK (trust IN ('own', 'trusted', 'known'))
);

CREATE TABLE meta (
    "key" VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    PRIMARY KEY ("key")
);

CREATE TABLE outcome (
    id VARCHAR NOT NULL,
    "query" VARCHAR NOT NULL,
    artifact VARCHAR,
    policy VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    reasons VARCHAR NOT NULL,
    answer VARCHAR,
    decode_tokens INTEGER NOT NULL,
    prefill_tokens INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    joules FLOAT,
    flops INTEGER NOT NULL,
    tokens_saved INTEGER NOT NULL,
    seconds_saved FLOAT NOT NULL,
    exactness VARCHAR NOT NULL,
    flagged BOOLEAN NOT NULL,
    origin VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    identity VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    created_by VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT verdict_known CHECK (verdict IN ('GRAFT', 'TRANSFER', 'REFUSE'))
);
CREATE INDEX outcome_artifact ON outcome (artifact);
CREATE INDEX outcome_created ON outcome (created);

CREATE TABLE pairlabel (
    id VARCHAR NOT NULL,
    stored VARCHAR NOT NULL,
    "query" VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    note VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    artifact VARCHAR,
    created VARCHAR NOT NULL,
    created_by VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT label_known CHECK (label IN ('safe', 'unsafe', 'unsure'))
);

CREATE TABLE problem (
    id VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    reference VARCHAR,
    canonical_key VARCHAR NOT NULL,
    canonical_version INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    created_by VARCHAR NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX problem_key ON problem (canonical_key);

CREATE TABLE user (
    name VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    password VARCHAR NOT NULL,
    active BOOLEAN NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (name),
    CONSTRAINT role_known CHECK (role IN ('viewer', 'solver', 'reviewer', 'admin'))
);

CREATE TABLE attempt (
    id VARCHAR NOT NULL,
    problem_id VARCHAR NOT NULL,
    job_id VARCHAR,
    number INTEGER NOT NULL,
    origin VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    identity VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    sampling VARCHAR NOT NULL,
    thinking VARCHAR NOT NULL,
    solution VARCHAR NOT NULL,
    answer VARCHAR,
    status VARCHAR NOT NULL,
    review VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    decode_tokens INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    tokens_per_second FLOAT NOT NULL,
    joules FLOAT,
    flops INTEGER NOT NULL,
    staged VARCHAR,
    created VARCHAR NOT NULL,
    created_by VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT status_known CHECK (status IN ('solved', 'truncated', 'cancelled', 'failed')),
    CONSTRAINT review_known CHECK (review IN ('none', 'pending', 'flagged', 'approved', 'rejected')),
    FOREIGN KEY(problem_id) REFERENCES problem (id),
    FOREIGN KEY(job_id) REFERENCES job (id)
);
CREATE INDEX attempt_problem ON attempt (problem_id);
CREATE INDEX attempt_review ON attempt (review, created);

CREATE TABLE segment (
    id VARCHAR NOT NULL,
    book_id VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    file VARCHAR NOT NULL,
    file_digest VARCHAR NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    text VARCHAR NOT NULL,
    artifact VARCHAR,
    PRIMARY KEY (id),
    FOREIGN KEY(book_id) REFERENCES book (id)
);
CREATE INDEX segment_book ON segment (book_id, ordinal);

CREATE TABLE artifact (
    digest VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    state_reason VARCHAR NOT NULL,
    state_since VARCHAR NOT NULL,
    attempt_id VARCHAR,
    problem_text VARCHAR NOT NULL,
    canonical_key VARCHAR NOT NULL,
    canonical_version INTEGER NOT NULL,
    answer VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    identity VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    verifier VARCHAR NOT NULL,
    reviewer VARCHAR NOT NULL,
    size_bytes INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    compression VARCHAR NOT NULL,
    graft_point INTEGER NOT NULL,
    solve_tokens INTEGER NOT NULL,
    solve_seconds FLOAT NOT NULL,
    solve_flops INTEGER NOT NULL,
    solve_joules FLOAT,
    pinned BOOLEAN NOT NULL,
    uses INTEGER NOT NULL,
    last_used VARCHAR,
    parent VARCHAR,
    origin VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (digest),
    CONSTRAINT digest_form CHECK (length(digest) = 71 AND digest GLOB 'blake3:*' AND substr(digest, 8) NOT GLOB '*[^0-9a-f]*'),
    CONSTRAINT kind_known CHECK (kind IN ('solution', 'segment')),
    CONSTRAINT state_known CHECK (state IN ('published', 'held', 'evicted', 'quarantined', 'revoked', 'imported')),
    FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);
CREATE INDEX artifact_attempt ON artifact (attempt_id);
CREATE INDEX artifact_created ON artifact (created);
CREATE INDEX artifact_key ON artifact (canonical_key, identity, state);
CREATE INDEX artifact_model ON artifact (state, model, created);
CREATE INDEX artifact_size ON artifact (state, size_bytes, stored_bytes);
CREATE INDEX artifact_state ON artifact (state, created);
CREATE INDEX artifact_tokens ON artifact (state, solve_tokens);
CREATE INDEX artifact_uses ON artifact (state, uses);

CREATE TABLE decision (
    id VARCHAR NOT NULL,
    attempt_id VARCHAR NOT NULL,
    attempt_version INTEGER NOT NULL,
    reviewer VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT action_known CHECK (action IN ('approve', 'reject', 'flag', 'skip', 'undo', 'note')),
    CONSTRAINT reject_has_reason CHECK (action <> 'reject' OR length(trim(reason)) > 0),
    FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);
CREATE INDEX decision_attempt ON decision (attempt_id);

CREATE TABLE evidence (
    id INTEGER NOT NULL,
    attempt_id VARCHAR NOT NULL,
    check_name VARCHAR NOT NULL,
    outcome VARCHAR NOT NULL,
    summary VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    verifier VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT outcome_known CHECK (outcome IN ('pass', 'fail', 'unknown', 'not_applicable')),
    FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);
CREATE INDEX evidence_attempt ON evidence (attempt_id);

CREATE TABLE lease (
    attempt_id VARCHAR NOT NULL,
    reviewer VARCHAR NOT NULL,
    expires VARCHAR NOT NULL,
    PRIMARY KEY (attempt_id),
    FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);

CREATE TABLE measurement (
    id VARCHAR NOT NULL,
    artifact VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    finding VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(artifact) REFERENCES artifact (digest)
);
CREATE INDEX measurement_artifact ON measurement (artifact);

-- What only grows.
CREATE TRIGGER decision_no_update BEFORE UPDATE ON decision BEGIN
    SELECT RAISE(ABORT, 'decision only grows: update refused');
END;
CREATE TRIGGER decision_no_delete BEFORE DELETE ON decision BEGIN
    SELECT RAISE(ABORT, 'decision only grows: delete refused');
END;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence BEGIN
    SELECT RAISE(ABORT, 'evidence only grows: update refused');
END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence BEGIN
    SELECT RAISE(ABORT, 'evidence only grows: delete refused');
END;
CREATE TRIGGER outcome_no_update BEFORE UPDATE ON outcome BEGIN
    SELECT RAISE(ABORT, 'outcome only grows: update refused');
END;
CREATE TRIGGER outcome_no_delete BEFORE DELETE ON outcome BEGIN
    SELECT RAISE(ABORT, 'outcome only grows: delete refused');
END;
CREATE TRIGGER pairlabel_no_update BEFORE UPDATE ON pairlabel BEGIN
    SELECT RAISE(ABORT, 'pairlabel only grows: update refused');
END;
CREATE TRIGGER pairlabel_no_delete BEFORE DELETE ON pairlabel BEGIN
    SELECT RAISE(ABORT, 'pairlabel only grows: delete refused');
END;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit only grows: update refused');
END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit only grows: delete refused');
END;
CREATE TRIGGER measurement_no_update BEFORE UPDATE ON measurement BEGIN
    SELECT RAISE(ABORT, 'measurement only grows: update refused');
END;
CREATE TRIGGER measurement_no_delete BEFORE DELETE ON measurement BEGIN
    SELECT RAISE(ABORT, 'measurement only grows: delete refused');
END;

-- Records of artifacts and attempts stay, whatever becomes of their bytes.
CREATE TRIGGER artifact_no_delete BEFORE DELETE ON artifact BEGIN
    SELECT RAISE(ABORT, 'the record of an artifact stays: delete refused');
END;
CREATE TRIGGER attempt_no_delete BEFORE DELETE ON attempt BEGIN
    SELECT RAISE(ABORT, 'the record of an attempt stays: delete refused');
END;
CREATE TRIGGER artifact_fixed BEFORE UPDATE OF digest, kind, problem_text, answer, model, identity, environment,
    size_bytes, graft_point, attempt_id, created ON artifact
WHEN OLD.digest IS NOT NEW.digest OR OLD.kind IS NOT NEW.kind OR OLD.problem_text IS NOT NEW.problem_text
    OR OLD.answer IS NOT NEW.answer OR OLD.model IS NOT NEW.model OR OLD.identity IS NOT NEW.identity
    OR OLD.environment IS NOT NEW.environment OR OLD.size_bytes IS NOT NEW.size_bytes
    OR OLD.graft_point IS NOT NEW.graft_point OR OLD.attempt_id IS NOT NEW.attempt_id
    OR OLD.created IS NOT NEW.created
BEGIN
    SELECT RAISE(ABORT, 'an artifact is immutable: update refused');
END;
CREATE TRIGGER artifact_never_returns BEFORE UPDATE OF state ON artifact
WHEN (OLD.state = 'revoked' AND NEW.state <> 'revoked')
    OR (OLD.state = 'quarantined' AND NEW.state NOT IN ('quarantined', 'revoked'))
BEGIN
    SELECT RAISE(ABORT, 'a revoked or quarantined artifact never comes back');
END;
CREATE TRIGGER attempt_approved_first BEFORE INSERT ON artifact
WHEN NEW.attempt_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM attempt WHERE id = NEW.attempt_id AND review = 'approved')
BEGIN
    SELECT RAISE(ABORT, 'an artifact needs an approved attempt');
END;

-- Full-text index over the problems of published solutions, and of nothing else. The texts stay in `artifact`;
-- `problemdoc` gives each a stable integer, since the row ids of a table keyed by text may change in a VACUUM.
CREATE TABLE problemdoc (
    docid INTEGER PRIMARY KEY,
    digest VARCHAR NOT NULL UNIQUE REFERENCES artifact (digest)
);
CREATE VIEW problemtext AS
    SELECT problemdoc.docid AS docid, artifact.problem_text AS text
    FROM problemdoc JOIN artifact ON artifact.digest = problemdoc.digest;
CREATE VIRTUAL TABLE problemindex USING fts5(
    text, content = 'problemtext', content_rowid = 'docid', tokenize = 'unicode61 remove_diacritics 0'
);
CREATE TRIGGER problemindex_insert AFTER INSERT ON artifact
WHEN NEW.state = 'published' AND NEW.kind = 'solution'
BEGIN
    INSERT INTO problemdoc (digest) VALUES (NEW.digest);
    INSERT INTO problemindex (rowid, text)
        SELECT docid, NEW.problem_text FROM problemdoc WHERE digest = NEW.digest;
END;
CREATE TRIGGER problemindex_enter AFTER UPDATE OF state ON artifact
WHEN NEW.state = 'published' AND OLD.state <> 'published' AND NEW.kind = 'solution'
BEGIN
    INSERT INTO problemdoc (digest) VALUES (NEW.digest);
    INSERT INTO problemindex (rowid, text)
        SELECT docid, NEW.problem_text FROM problemdoc WHERE digest = NEW.digest;
END;
CREATE TRIGGER problemindex_leave AFTER UPDATE OF state ON artifact
WHEN OLD.state = 'published' AND NEW.state <> 'published' AND NEW.kind = 'solution'
BEGIN
    INSERT INTO problemindex (problemindex, rowid, text)
        SELECT 'delete', docid, OLD.problem_text FROM problemdoc WHERE digest = NEW.digest;
    DELETE FROM problemdoc WHERE digest = NEW.digest;
END;
