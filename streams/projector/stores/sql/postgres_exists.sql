-- Whether the tables of the store exist: a login without the right to create them can use them.
SELECT to_regclass('noetl_projections.projection') IS NOT NULL
