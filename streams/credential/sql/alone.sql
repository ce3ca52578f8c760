-- Held to the end of the transaction: one name is set or removed by one at a time.
SELECT pg_advisory_xact_lock(hashtext('noetl.credential'), hashtext($1))
