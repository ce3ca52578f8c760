-- Which execution each key of a subscription's messages has.
SELECT k.reader, k.message_key, k.execution_id
FROM unnest($1::text[], $2::text[]) AS w (reader, message_key)
JOIN noetl.subscription_key k USING (reader, message_key)
