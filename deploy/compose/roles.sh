#!/bin/sh
# Runs once, when the database is first made: one login for each duty, and who owns what.
# Those that append, mirror, collect or own must see every row once row security is on.
set -eu

role() { # name, options
  psql -v ON_ERROR_STOP=1 -v password="$NOETL_ROLE_PASSWORD" --username "$POSTGRES_USER" <<SQL
CREATE ROLE $1 LOGIN $2 PASSWORD :'password';
SQL
}

role noetl_owner "CREATEDB BYPASSRLS"
role noetl_append BYPASSRLS
role noetl_read ""
role noetl_mirror "REPLICATION BYPASSRLS"
role noetl_project ""
role noetl_collect BYPASSRLS
role noetl_author ""
role noetl_analytics ""
role registry ""

psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<SQL
CREATE DATABASE noetl OWNER noetl_owner;
CREATE DATABASE author OWNER noetl_author;
CREATE DATABASE analytics OWNER noetl_analytics;
CREATE DATABASE registry OWNER registry;
SQL
