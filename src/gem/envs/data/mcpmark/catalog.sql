-- The structure of a database, as one JSON value. {own} stands for the condition that a schema n is not a system's.
SELECT json_build_object(
 'relations', (SELECT json_agg(json_build_array(n.nspname, c.relname, c.relkind, c.relrowsecurity, c.relpersistence))
   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind <> 'i' AND {own}),
 'columns', (SELECT json_agg(json_build_array(c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
     a.attgenerated <> '' OR a.attidentity <> '' OR a.atthasdef) ORDER BY a.attnum)
   FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped AND {own}),
 'keys', (SELECT json_agg(json_build_array(c.relname, (SELECT json_agg(a.attname ORDER BY a.attname) FROM pg_attribute a
     WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))))
   FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND {own}),
 'references', (SELECT json_agg(json_build_array(c.relname, (SELECT json_agg(a.attname ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)), f.relname,
     (SELECT json_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
       WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)),
     CASE k.confdeltype WHEN 'r' THEN 'a' ELSE k.confdeltype END))
   FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid
   WHERE k.contype = 'f' AND k.convalidated AND NOT k.condeferrable),
 'code', (SELECT json_agg(name) FROM (
   SELECT 'function ' || p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {own}
   UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
   UNION ALL SELECT 'disabled trigger ' || tgname FROM pg_trigger WHERE tgenabled <> 'O'
   UNION ALL SELECT 'rule ' || r.rulename FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE r.rulename <> '_RETURN' AND {own}
   UNION ALL SELECT 'policy ' || polname FROM pg_policy
   UNION ALL SELECT 'check ' || k.conname FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
     WHERE k.contype NOT IN ('p', 'u', 'f', 'n') AND {own}
   UNION ALL SELECT 'inheritance of ' || inhrelid::regclass FROM pg_inherits
   UNION ALL SELECT 'type ' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
     WHERE t.typtype <> 'c' AND t.typcategory <> 'A' AND {own}
   UNION ALL SELECT 'operator ' || oprname FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
     WHERE {own}
   UNION ALL SELECT 'cast ' || oid FROM pg_cast WHERE oid >= 16384
   UNION ALL SELECT 'extension ' || extname FROM pg_extension WHERE extname <> 'plpgsql'
   UNION ALL SELECT 'schema ' || nspname FROM pg_namespace n WHERE nspname <> 'public' AND {own}
   UNION ALL SELECT 'large object ' || oid FROM pg_largeobject_metadata) AS others))
