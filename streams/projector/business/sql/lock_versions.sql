-- One command at a time changes the versions of a projection.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'projection', $1::text, $2::text, $3::text), 0))
