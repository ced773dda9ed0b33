-- The limits of a queue of tasks.

-- Set the limit of the tube in "parts", of the whole queue if that is ''; or remove it.
CREATE OR REPLACE FUNCTION pressure_mp.limit_tasks(q pressure_mp.queues, args jsonb, parts bytea[])
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was_passed boolean;
BEGIN
    IF (args->>'number')::bigint > 0 THEN
        INSERT INTO pressure_mp.limits (queue, tube, number, per, each_key)
            VALUES (q.id, parts[1], (args->>'number')::bigint, (args->>'per')::bigint,
                args ? 'each_key')
            ON CONFLICT (queue, tube, each_key) DO UPDATE
                SET number = excluded.number, per = excluded.per;
    ELSE
        DELETE FROM pressure_mp.limits v
            WHERE v.queue = q.id AND v.tube = parts[1] AND v.each_key = args ? 'each_key'
            RETURNING v.passed INTO was_passed;
        IF was_passed THEN
            PERFORM pressure_mp.begin_again(q.id, parts[1]);
        END IF;
    END IF;
    UPDATE pressure_mp.queues v SET version = v.version + 1,
            limited = EXISTS (SELECT FROM pressure_mp.limits l WHERE l.queue = q.id)
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    IF args ? 'each_key' THEN
        PERFORM pressure_mp.change_key_limits(q);
    END IF;
    RETURN pressure_mp.said('done');
END $$;

-- Return the log of a limit: what counts now.
CREATE OR REPLACE FUNCTION pressure_mp.log_of(l pressure_mp.limits, moment bigint)
RETURNS TABLE (at bigint, n bigint) LANGUAGE sql STABLE AS $$
    SELECT least(u.at, moment) AS at, sum(u.n)::bigint AS n FROM unnest(l.moments, l.numbers) u (at, n)
        WHERE least(u.at, moment) >= moment - l.per GROUP BY 1 ORDER BY 1
$$;

-- Return how many tasks were delivered that count now; and the last millisecond in which no task may
-- be, NULL if one may be now.
CREATE OR REPLACE FUNCTION pressure_mp.use_of(l pressure_mp.limits, moment bigint,
    OUT used bigint, OUT used_until bigint) LANGUAGE sql STABLE AS $$
    SELECT f.used, CASE WHEN f.used >= l.number THEN f.at + l.per END FROM (
        SELECT coalesce(max(s.total), 0)::bigint AS used,
            min(s.at) FILTER (WHERE s.total - s.upto < l.number) AS at
        FROM (SELECT v.at, sum(v.n) OVER (ORDER BY v.at) AS upto, sum(v.n) OVER () AS total
            FROM pressure_mp.log_of(l, moment) v) s) f
$$;

-- Return all limits of a queue and of its tubes, with their use now.
CREATE OR REPLACE FUNCTION pressure_mp.limits_of(a_queue bigint, moment bigint)
RETURNS TABLE (tube bytea, number bigint, per bigint, used bigint, used_until bigint)
LANGUAGE sql STABLE AS $$
    SELECT l.tube, l.number, l.per, f.used, f.used_until
        FROM pressure_mp.limits l, LATERAL pressure_mp.use_of(l, moment) f
        WHERE l.queue = a_queue AND NOT l.each_key ORDER BY l.tube
$$;

-- Return how many tasks the limits of a queue admit now, by tube; takes see tasks again that they
-- passed by while a limit was used up.
CREATE OR REPLACE FUNCTION pressure_mp.look_at_limits(q pressure_mp.queues, moment bigint)
RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    shares jsonb := (SELECT jsonb_object_agg(encode(l.tube, 'hex'), greatest(l.number - l.used, 0))
        FROM pressure_mp.limits_of(q.id, moment) l);
    a_tube bytea;
BEGIN
    -- Moments from before the clock was set back: these deliveries count from now on.
    UPDATE pressure_mp.limits v SET moments = ARRAY(SELECT least(u.at, moment)
            FROM unnest(v.moments) WITH ORDINALITY u (at, o) ORDER BY u.o)
        WHERE v.queue = q.id AND v.moments[cardinality(v.moments)] > moment;
    FOR a_tube IN UPDATE pressure_mp.limits v SET passed = false
        WHERE v.queue = q.id AND v.passed AND NOT v.each_key AND shares->>encode(v.tube, 'hex') <> '0' RETURNING v.tube
    LOOP
        PERFORM pressure_mp.first_ready(q, a_tube);  -- its own line begins there from now on
        PERFORM pressure_mp.begin_again(q.id, a_tube);
    END LOOP;
    RETURN shares;
END $$;

-- Return the tubes whose limits admit no task.
CREATE OR REPLACE FUNCTION pressure_mp.used_up(shares jsonb) RETURNS bytea[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(decode(s.key, 'hex')), '{}') FROM jsonb_each_text(shares) s
        WHERE s.value = '0'
$$;

-- Return what the limits admit after one more task of a tube.
CREATE OR REPLACE FUNCTION pressure_mp.use_share(shares jsonb, a_tube bytea) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_object_agg(s.key, s.value::bigint
            - (s.key IN ('', encode(a_tube, 'hex')))::integer)
        FROM jsonb_each_text(shares) s
$$;

-- Note that takes of all tubes pass by the tasks of these.
CREATE OR REPLACE FUNCTION pressure_mp.pass_by(a_queue bigint, tubes bytea[]) RETURNS void
LANGUAGE sql VOLATILE AS $$
    UPDATE pressure_mp.limits v SET passed = true
        WHERE v.queue = a_queue AND v.tube = ANY (tubes) AND v.tube <> '' AND NOT v.passed
            AND NOT v.each_key
$$;

-- Return the limit after deliveries that are made now.
CREATE OR REPLACE FUNCTION pressure_mp.add_deliveries(l pressure_mp.limits, more bigint, moment bigint)
RETURNS pressure_mp.limits LANGUAGE plpgsql STABLE AS $$
DECLARE
    last integer;
    step bigint := CASE WHEN l.number > 256 THEN greatest(l.per / 256, 1) ELSE 1 END;
BEGIN
    SELECT coalesce(array_agg(v.at), '{}'), coalesce(array_agg(v.n), '{}')
        INTO l.moments, l.numbers FROM pressure_mp.log_of(l, moment) v;
    last := cardinality(l.moments);
    IF l.moments[last] / step = moment / step THEN
        l.moments[last] := moment;
        l.numbers[last] := l.numbers[last] + more;
    ELSE
        l.moments := l.moments || moment;
        l.numbers := l.numbers || more;
    END IF;
    RETURN l;
END $$;

-- Note that these tasks are delivered now.
CREATE OR REPLACE FUNCTION pressure_mp.note_deliveries(a_queue bigint, taken pressure_mp.tasks[],
    moment bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l pressure_mp.limits;
    more bigint;
BEGIN
    FOR l IN SELECT * FROM pressure_mp.limits v WHERE v.queue = a_queue AND NOT v.each_key LOOP
        more := (SELECT count(*) FROM unnest(taken) t WHERE l.tube = '' OR t.tube = l.tube);
        CONTINUE WHEN more = 0;
        l := pressure_mp.add_deliveries(l, more, moment);
        UPDATE pressure_mp.limits v SET moments = l.moments, numbers = l.numbers
            WHERE v.queue = a_queue AND v.tube = l.tube AND NOT v.each_key;
    END LOOP;
END $$;

-- Return the info of the reply to a session that waits for a task. It leaves it to another session to
-- call when a limit admits a task, if one will: that has the next one woken.
CREATE OR REPLACE FUNCTION pressure_mp.watch_limits(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, info jsonb) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    due_at bigint := moment + (info->>'due')::bigint - 1;
BEGIN
    IF EXISTS (SELECT FROM pressure_mp.waiting v WHERE v.slot = q.slot AND v.line = 't'
        AND v.place > q.passed AND v.session <> c.session AND v.due BETWEEN moment AND due_at)
    THEN
        due_at := NULL;
    END IF;
    UPDATE pressure_mp.waiting v SET due = due_at
        WHERE v.slot = q.slot AND v.line = 't' AND v.place > q.passed AND v.session = c.session;
    RETURN CASE WHEN due_at IS NULL THEN '{"due": null}' ELSE info END;
END $$;

-- Return the last millisecond before a limit admits the next ready task, or before a task is ready
-- that will be "due"; NULL if neither happens by itself. "q" has its own paused tubes.
CREATE OR REPLACE FUNCTION pressure_mp.admitted_after(q pressure_mp.queues, moment bigint,
    due bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l record;
    least_due bigint := 0;
BEGIN
    due := least(due, (SELECT min(v.blocked) FROM pressure_mp.groups v
        WHERE v.queue = q.id AND v.blocked > 0));
    FOR l IN SELECT v.tube, v.used_until FROM pressure_mp.limits_of(q.id, moment) v
        WHERE v.used_until IS NOT NULL
    LOOP
        IF l.tube = '' THEN
            least_due := l.used_until;
        END IF;
        IF NOT ('' = ANY (q.paused) OR l.tube = ANY (q.paused))
            AND ((pressure_mp.count_ready(q.id, l.tube)).info)::bigint > 0
        THEN
            due := least(due, l.used_until);
        END IF;
    END LOOP;
    RETURN CASE WHEN due IS NOT NULL THEN greatest(due, least_due) END;
END $$;
