-- Schema ids kept beside the log (schema_registry.backend: db).
--
-- A row is never changed or removed: its id is in the bytes of stored events.

CREATE TABLE noetl.schema (
    schema_id   integer PRIMARY KEY CHECK (schema_id > 0),
    fingerprint text NOT NULL UNIQUE,
    schema      text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE noetl.schema IS
    'Avro schemas by the id that stored events carry; one schema has one id.';

CREATE TABLE noetl.schema_subject (
    subject    text NOT NULL,
    version    integer NOT NULL CHECK (version > 0),
    schema_id  integer NOT NULL REFERENCES noetl.schema,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subject, version),
    UNIQUE (subject, schema_id)
);
COMMENT ON TABLE noetl.schema_subject IS
    'Under which subjects (<topic>-value) a schema is known, in the order they came.';

-- The usual call finds both rows and takes no lock. Registering does, so that two processes
-- that start together agree on one id and leave no gap.
CREATE FUNCTION noetl.schema_id_for(wanted_subject text, wanted_fingerprint text, wanted text)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    known_id integer;
BEGIN
    SELECT s.schema_id INTO known_id
    FROM noetl.schema s JOIN noetl.schema_subject USING (schema_id)
    WHERE s.fingerprint = wanted_fingerprint AND subject = wanted_subject;
    IF FOUND THEN
        RETURN known_id;
    END IF;

    PERFORM pg_advisory_xact_lock(hashtextextended('noetl.schema', 0));
    INSERT INTO noetl.schema (schema_id, fingerprint, schema)
    SELECT coalesce(max(schema_id), 0) + 1, wanted_fingerprint, wanted FROM noetl.schema
    ON CONFLICT (fingerprint) DO NOTHING;
    SELECT schema_id INTO STRICT known_id FROM noetl.schema WHERE fingerprint = wanted_fingerprint;

    INSERT INTO noetl.schema_subject (subject, version, schema_id)
    SELECT wanted_subject, coalesce(max(version), 0) + 1, known_id
    FROM noetl.schema_subject WHERE subject = wanted_subject
    ON CONFLICT (subject, schema_id) DO NOTHING;
    RETURN known_id;
END
$$;

REVOKE ALL ON FUNCTION noetl.schema_id_for(text, text, text) FROM PUBLIC;
GRANT SELECT, INSERT ON noetl.schema, noetl.schema_subject TO noetl_append;
GRANT EXECUTE ON FUNCTION noetl.schema_id_for(text, text, text) TO noetl_append;
GRANT SELECT ON noetl.schema, noetl.schema_subject
    TO noetl_read, noetl_mirror, noetl_project, noetl_collect;
