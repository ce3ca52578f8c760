-- The credential of this name, if the newest version of the subscription names it.
SELECT * FROM noetl.credential_for_subscription($1, $2)
