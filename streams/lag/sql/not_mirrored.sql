-- The oldest event after the newest of these mirrored ones, and how many there are, up to a limit.
-- Where the mirrored ones have expired from their topic, only events since a time can be missing.
WITH newest AS (
  SELECT e.xid, e.position
  FROM unnest($1::bigint[], $2::bigint[]) AS m (root_id, seq)
  JOIN noetl.event e ON e.root_id = m.root_id AND e.seq = m.seq
  ORDER BY e.xid DESC, e.position DESC LIMIT 1
), missing AS (
  SELECT ingest_time FROM noetl.event
  WHERE (xid, position) > (
    coalesce((SELECT xid FROM newest), '0'::xid8), coalesce((SELECT position FROM newest), 0)
  ) AND ingest_time >= $4
  ORDER BY xid, position LIMIT $3
)
SELECT min(ingest_time) AS oldest, count(*) AS missing FROM missing
