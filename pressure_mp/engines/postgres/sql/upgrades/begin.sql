-- The beginning of each upgrade that changes tables: it locks the tables until its commit. The
-- table of queues comes first, as in every call. All others wait behind an upgrade that waits for a
-- table: so it waits half a second at most, and lets them go on before it tries again.
SET LOCAL lock_timeout = '500ms';
DO $$
DECLARE
    tables text;
    users text;
BEGIN
    SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.relname <> 'queues', c.relname)
        INTO tables FROM pg_class c, pg_class q
        WHERE q.oid = 'pressure_mp.queues'::regclass AND c.relkind = 'r'
            AND c.relnamespace = q.relnamespace;
    FOR try IN 1 .. 40 LOOP
        BEGIN
            EXECUTE 'LOCK TABLE ' || tables || ' IN ACCESS EXCLUSIVE MODE';
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            PERFORM pg_sleep(0.5);
        END;
    END LOOP;
    SELECT string_agg(DISTINCT l.pid::text, ', ') INTO users FROM pg_locks l, pg_class c, pg_class q
        WHERE l.relation = c.oid AND l.granted AND l.pid <> pg_backend_pid()
            AND q.oid = 'pressure_mp.queues'::regclass AND c.relnamespace = q.relnamespace;
    RAISE 'transactions that do not end use its tables: those of the server''s processes %', users
        USING ERRCODE = 'object_in_use';
END $$;
