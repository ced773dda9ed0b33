-- Requests to the database, not to a single queue: its queues, its samples, its settings.

-- Return up to so many queues behind that one, by their slots, each as JSON.
CREATE OR REPLACE FUNCTION pressure_mp.list_queues(a_prefix text, a_after bigint, a_limit bigint)
RETURNS TABLE (queue text) LANGUAGE sql VOLATILE AS $$
    SELECT jsonb_build_object(
        'slot', q.slot::text,
        'name', q.name,
        'discipline', q.discipline,
        'length', q.length,
        'bound', q.bound,
        'closed', q.closed,
        'paused', pressure_mp.texts(q.paused),
        'produced', q.produced_messages,
        'consumed', q.consumed_messages,
        'in_flight', (SELECT count(*) FROM pressure_mp.deliveries d
                WHERE d.queue = q.id AND NOT d.passed)
            + (SELECT coalesce(sum(cardinality(r.entries)), 0)
                FROM pressure_mp.readers r WHERE r.queue = q.id),
        'rejected', (SELECT count(*) FROM pressure_mp.rejected r WHERE r.queue = q.id),
        'putting', (SELECT count(*) FROM pressure_mp.waiting w WHERE w.slot = q.slot
            AND w.line = 'p'),
        'getting', (SELECT count(*) FROM pressure_mp.waiting w WHERE w.slot = q.slot
            AND w.line IN ('c', 't')),
        'age', CASE q.kind WHEN 'tasks' THEN pressure_mp.clock() - (
            SELECT t.created FROM pressure_mp.tasks t WHERE t.queue = q.id AND t.state = 'R'
                ORDER BY t.priority, t.arrival LIMIT 1) END,
        'returned', (SELECT coalesce(sum(w.number), 0) FROM pressure_mp.ways w
            WHERE w.queue = q.id AND w.way = 'T-R' AND q.kind = 'items'),
        'maxsize', coalesce((q.settings->>'maxsize')::bigint, 0),
        'workers', (SELECT coalesce(sum(jsonb_array_length(l.workers)), 0)
            FROM pressure_mp.leases l WHERE l.queue = q.id AND l.role = 't'
                AND l.workers IS NOT NULL AND l.until >= pressure_mp.clock()),
        'ways', CASE q.kind WHEN 'tasks' THEN (
            SELECT coalesce(jsonb_object_agg(convert_from(w.way, 'UTF8'), w.number), '{}')
                FROM pressure_mp.ways w WHERE w.queue = q.id
                    AND position(decode('20', 'hex') IN w.way) = 0) END
    )::text
    FROM (SELECT v.* FROM pressure_mp.queues v WHERE v.prefix = a_prefix AND v.slot > a_after
        ORDER BY v.slot LIMIT a_limit) q
    ORDER BY q.slot
$$;

-- Return the settings with which the server can lose confirmed data.
CREATE OR REPLACE FUNCTION pressure_mp.server_settings() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT jsonb_build_object(
        'fsync', current_setting('fsync'),
        'synchronous_commit', current_setting('synchronous_commit'),
        'full_page_writes', current_setting('full_page_writes'),
        'synchronous_standby_names', current_setting('synchronous_standby_names'),
        'idle_session_timeout', current_setting('idle_session_timeout', true),
        'max_connections', current_setting('max_connections'),
        'in_recovery', pg_is_in_recovery(),
        'standbys', (SELECT count(*) FROM pg_stat_replication)
    )::text
$$;

-- Keep a sample of all queues, unless one was kept less than "every" milliseconds ago. Returns
-- whether this one was kept.
CREATE OR REPLACE FUNCTION pressure_mp.append_sample(a_prefix text, a_data bytea, every bigint,
    keep bigint, ttl bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment bigint;
    newest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(pressure_mp.slot(a_prefix, 'samples', ''));
    moment := pressure_mp.clock();
    DELETE FROM pressure_mp.samples s WHERE s.prefix = a_prefix AND s.until <= moment;
    SELECT max(s.at) INTO newest FROM pressure_mp.samples s WHERE s.prefix = a_prefix;
    IF moment >= newest AND moment - newest < every THEN
        RETURN false;
    END IF;
    -- The clock may have been set back: the newest sample stays last.
    moment := greatest(moment, newest + 1);
    INSERT INTO pressure_mp.samples VALUES (a_prefix, moment, moment + ttl, a_data);
    UPDATE pressure_mp.samples s SET until = moment + ttl WHERE s.prefix = a_prefix;
    DELETE FROM pressure_mp.samples s WHERE s.prefix = a_prefix AND s.at <= (
        SELECT v.at FROM pressure_mp.samples v WHERE v.prefix = a_prefix
            ORDER BY v.at DESC OFFSET keep LIMIT 1);
    RETURN true;
END $$;

-- Return the samples after that time, oldest first.
CREATE OR REPLACE FUNCTION pressure_mp.read_samples(a_prefix text, a_after bigint)
RETURNS TABLE (at bigint, data bytea) LANGUAGE sql VOLATILE AS $$
    SELECT s.at, s.data FROM pressure_mp.samples s
        WHERE s.prefix = a_prefix AND s.at > a_after AND s.until > pressure_mp.clock()
        ORDER BY s.at
$$;
