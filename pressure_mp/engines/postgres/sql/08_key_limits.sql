-- The limits of each key of a queue of tasks.

-- Return the limit of a key, with its log; NULL if it has none.
CREATE OR REPLACE FUNCTION pressure_mp.key_limit(a_queue bigint, a_tube bytea, a_key bytea)
RETURNS pressure_mp.limits LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l pressure_mp.limits;
BEGIN
    SELECT * INTO l FROM pressure_mp.limits v
        WHERE v.queue = a_queue AND v.each_key AND v.tube IN (a_tube, '')
        ORDER BY v.tube = a_tube DESC LIMIT 1;
    IF FOUND THEN
        SELECT v.moments, v.numbers INTO l.moments, l.numbers FROM pressure_mp.key_logs v
            WHERE v.queue = a_queue AND v.tube = a_tube AND v.key = a_key;
    END IF;
    RETURN l;
END $$;

-- Note that a task with a key is delivered now.
CREATE OR REPLACE FUNCTION pressure_mp.note_key_delivery(t pressure_mp.tasks, moment bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l pressure_mp.limits := pressure_mp.key_limit(t.queue, t.tube, t.key);
BEGIN
    IF t.key = '' OR l.queue IS NULL THEN
        RETURN;
    END IF;
    l := pressure_mp.add_deliveries(l, 1, moment);
    INSERT INTO pressure_mp.key_logs
        VALUES (t.queue, t.tube, t.key, l.moments, l.numbers, moment + l.per)
        ON CONFLICT (queue, tube, key) DO UPDATE
            SET moments = excluded.moments, numbers = excluded.numbers, until = excluded.until;
END $$;

-- Return the last millisecond in which the limit of a key keeps its tasks out of the line; NULL if it
-- does not now.
CREATE OR REPLACE FUNCTION pressure_mp.key_used_until(a_queue bigint, a_tube bytea, a_key bytea)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l pressure_mp.limits := pressure_mp.key_limit(a_queue, a_tube, a_key);
    moment bigint := pressure_mp.clock();
BEGIN
    -- Moments from before the clock was set back: these deliveries count from now on.
    UPDATE pressure_mp.key_logs v SET moments = ARRAY(SELECT least(u.at, moment)
            FROM unnest(v.moments) WITH ORDINALITY u (at, o) ORDER BY u.o)
        WHERE v.queue = a_queue AND v.tube = a_tube AND v.key = a_key
            AND l.moments[cardinality(l.moments)] > moment;
    RETURN (SELECT f.used_until FROM pressure_mp.use_of(l, moment) f WHERE l.queue IS NOT NULL);
END $$;

-- Put tasks in line of the keys whose limits admit one now, of some; and forget logs that are over.
-- Returns of how many keys.
CREATE OR REPLACE FUNCTION pressure_mp.open_keys(q pressure_mp.queues, moment bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    g pressure_mp.groups;
    n bigint := 0;
BEGIN
    FOR g IN SELECT * FROM pressure_mp.groups v
        WHERE v.queue = q.id AND v.blocked > 0 AND v.blocked < moment ORDER BY v.blocked LIMIT 100
    LOOP
        PERFORM pressure_mp.settle_group(q.slot, q.id, g.tube, g.key);
        n := n + 1;
    END LOOP;
    DELETE FROM pressure_mp.key_logs v WHERE v.queue = q.id AND v.until < moment;
    RETURN n;
END $$;

-- Put the right tasks in line after a change of the limits of keys.
CREATE OR REPLACE FUNCTION pressure_mp.change_key_limits(q pressure_mp.queues) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    g pressure_mp.key_logs;
BEGIN
    FOR g IN SELECT * FROM pressure_mp.key_logs v WHERE v.queue = q.id LOOP
        IF (pressure_mp.key_limit(q.id, g.tube, g.key)).queue IS NULL THEN
            DELETE FROM pressure_mp.key_logs v
                WHERE v.queue = q.id AND v.tube = g.tube AND v.key = g.key;
        END IF;
        PERFORM pressure_mp.settle_group(q.slot, q.id, g.tube, g.key);
    END LOOP;
END $$;
