-- Requests to a queue of tasks.

CREATE OR REPLACE FUNCTION pressure_mp.is_known(a_queue bigint, a_id bytea, ids bytea[])
RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN a_id = ANY (ids) OR EXISTS (SELECT FROM pressure_mp.tasks t
        WHERE t.queue = a_queue AND t.id = a_id);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.watch(c pressure_mp.caller, a_id bytea, moment bigint)
RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pressure_mp.watchers VALUES (c.slot, c.session, a_id, c.listener, NULL, moment)
    ON CONFLICT (slot, session) DO UPDATE
        SET task = excluded.task, listener = excluded.listener, outcome = NULL,
            seen = excluded.seen
$$;

-- Return the reason why the owner does not have the task by that take; NULL if it has.
CREATE OR REPLACE FUNCTION pressure_mp.not_held(t pressure_mp.tasks, a_owner text, a_call bigint)
RETURNS pressure_mp.reply LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF t.id IS NULL THEN
        RETURN pressure_mp.said('absent');
    ELSIF t.state <> 'T' THEN
        RETURN pressure_mp.said('other_state', to_jsonb(t.state));
    ELSIF t.owner <> a_owner OR t.call <> a_call THEN
        RETURN pressure_mp.said('other_owner', to_jsonb(t.owner));
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.get_task(a_queue bigint, a_id bytea)
RETURNS pressure_mp.tasks
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
BEGIN
    SELECT * INTO t FROM pressure_mp.tasks v WHERE v.queue = a_queue AND v.id = a_id;
    RETURN t;
END $$;

-- Settle one taken task. "parts" are its id, a tube, a report, new data, the data from which that
-- was made, and the result.
CREATE OR REPLACE FUNCTION pressure_mp.settle_task(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, a_op text, args jsonb, parts bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks := pressure_mp.get_task(q.id, parts[1]);
    r pressure_mp.reply;
    a_tube bytea := CASE WHEN args ? 'tube' THEN parts[2] END;
    delay bigint := (args->>'delay')::bigint;
    a_ttl bigint := (args->>'ttl')::bigint;
    increment bigint := (args->>'increment')::bigint;
BEGIN
    IF NOT (a_op = 'touch' AND (args->>'call')::bigint = 0 AND parts[3] = ''
        AND t.state IS NOT DISTINCT FROM 'R')
    THEN
        r := pressure_mp.not_held(t, args->>'owner', (args->>'call')::bigint);
        IF r.status IS NOT NULL THEN
            RETURN r;
        END IF;
    END IF;
    IF NOT pressure_mp.has_content(q.id, args->>'token') THEN
        RETURN pressure_mp.said('lost');
    ELSIF args ? 'made_of' AND parts[5] <> t.data THEN
        RETURN pressure_mp.said('changed');
    ELSIF args ? 'edit' THEN
        t.data := parts[4];
        UPDATE pressure_mp.tasks v SET data = t.data WHERE v.queue = q.id AND v.id = t.id;
    END IF;
    CASE a_op
    WHEN 'ack' THEN
        t := pressure_mp.process(q, c.slot, moment, t, delay, a_tube);
    WHEN 'release' THEN
        t.priority := coalesce((args->>'priority')::double precision, t.priority);
        t.deliveries := t.deliveries - (args ? 'unbegun')::integer;
        t := pressure_mp.give_back(q, c.slot, moment, t, parts[3], delay, a_ttl, a_tube);
    WHEN 'bury' THEN
        IF parts[3] <> '' THEN
            t.report := parts[3];
        END IF;
        t := pressure_mp.turn(c.slot, moment, t, 'B',
            CASE a_ttl WHEN 0 THEN 0 ELSE moment + a_ttl END, a_tube);
    WHEN 'touch' THEN
        IF t.due > 0 THEN
            t.due := coalesce(t.due + increment, greatest(t.due, moment +
                (q.settings->>CASE t.state WHEN 'T' THEN 'ttr' ELSE 'ttl' END)::bigint));
            UPDATE pressure_mp.tasks v SET due = t.due WHERE v.queue = q.id AND v.id = t.id;
            UPDATE pressure_mp.queues v SET version = v.version + 1, swept = t.due - 1
                WHERE t.due <= q.swept AND v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
        END IF;
        IF parts[3] <> '' THEN
            t.report := parts[3];
            UPDATE pressure_mp.tasks v SET report = t.report WHERE v.queue = q.id AND v.id = t.id;
            PERFORM pressure_mp.tell_inboxes(ARRAY[t], 'progress');
        END IF;
    END CASE;
    IF a_op <> 'touch' THEN
        PERFORM pressure_mp.say_result(t, parts[6], args->>'token');
    END IF;
    RETURN pressure_mp.tell_tasks('task', ARRAY[t], args ? 'whole');
END $$;

-- Change one task for an administrator. "parts" are as in settle_task.
CREATE OR REPLACE FUNCTION pressure_mp.change_task(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, args jsonb, parts bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks := pressure_mp.get_task(q.id, parts[1]);
    after text := args->>'to';
    before text := t.state;
    old_tube bytea;
    a_tube bytea := CASE WHEN args ? 'tube' THEN parts[2] END;
    delay bigint := (args->>'delay')::bigint;
BEGIN
    IF t.id IS NULL THEN
        RETURN pressure_mp.said('absent');
    ELSIF strpos(args->>'origins', t.state) = 0 THEN
        RETURN pressure_mp.said('other_state', to_jsonb(t.state));
    ELSIF args ? 'made_of' AND parts[5] <> t.data THEN
        RETURN pressure_mp.said('changed');
    ELSIF args ? 'edit' THEN
        t.data := parts[4];
        UPDATE pressure_mp.tasks v SET data = t.data WHERE v.queue = q.id AND v.id = t.id;
    END IF;
    IF t.state = 'B' AND after IN ('R', 'W') THEN
        t.deliveries := 0;
    END IF;
    IF after = '' AND t.state = 'T' THEN
        after := 'R';
    END IF;
    IF after = '' THEN
        IF coalesce(a_tube, '') <> t.tube THEN
            PERFORM pressure_mp.count_shift(q.id, t.state, t.state, t.tube, coalesce(a_tube, ''));
            old_tube := t.tube;
            UPDATE pressure_mp.tasks v
                SET tube = coalesce(a_tube, ''), line = CASE t.key WHEN '' THEN t.line ELSE 0 END
                WHERE v.queue = q.id AND v.id = t.id RETURNING * INTO t;
            IF t.key <> '' THEN
                PERFORM pressure_mp.settle_group(q.slot, q.id, old_tube, t.key);
                PERFORM pressure_mp.settle_group(q.slot, q.id, t.tube, t.key);
            ELSIF t.state = 'R' THEN
                PERFORM pressure_mp.note_ready(q.id, t.tube, t.priority, t.line);
            END IF;
        END IF;
    ELSIF after = 'X' THEN
        t := pressure_mp.vanish(c.slot, moment, t, 'killed');
    ELSIF after IN ('R', 'W') THEN
        t := pressure_mp.revive(q, c.slot, moment, t, delay, (args->>'ttl')::bigint, a_tube);
    ELSE
        t := pressure_mp.turn(c.slot, moment, t, after, CASE after WHEN 'Z' THEN
            pressure_mp.zombie_until(moment, coalesce(nullif(delay, 0),
                (q.settings->>'zombie')::bigint)) ELSE 0 END, a_tube);
        IF after <> 'B' THEN
            PERFORM pressure_mp.conclude(c.slot, moment, t, 'processed', before);
        END IF;
    END IF;
    RETURN pressure_mp.tell_tasks('task', ARRAY[t], true);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.kick_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    looked bigint := 0;
    kicked bigint := 0;
BEGIN
    FOR t IN
        SELECT * FROM pressure_mp.tasks v WHERE v.queue = q.id AND v.state = 'B'
            ORDER BY v.since, v.arrival LIMIT (args->>'limit')::bigint
    LOOP
        looked := looked + 1;
        IF t.due > 0 AND t.due <= moment THEN
            PERFORM pressure_mp.lapse(q, c.slot, moment, t);
        ELSE
            kicked := kicked + 1;
            t.deliveries := 0;
            PERFORM pressure_mp.revive(q, c.slot, moment, t, (args->>'delay')::bigint,
                (args->>'ttl')::bigint, NULL);
        END IF;
    END LOOP;
    RETURN pressure_mp.said('kicked', jsonb_build_array(looked, kicked));
END $$;

-- List tasks of one state, and of the tube in "parts" unless that is empty, in their order.
CREATE OR REPLACE FUNCTION pressure_mp.list_tasks(q pressure_mp.queues, args jsonb, parts bytea[])
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    listed pressure_mp.tasks[];
    a_state text := args->>'state';
BEGIN
    SELECT coalesce(array_agg(v), '{}') INTO listed FROM (
        SELECT t.* FROM pressure_mp.tasks t
            WHERE t.queue = q.id AND t.state = a_state AND (parts[1] = '' OR t.tube = parts[1])
            ORDER BY
                CASE WHEN a_state = 'R' THEN t.line = 0 END,
                CASE WHEN a_state = 'R' AND t.line = 0 THEN t.tube END,
                CASE WHEN a_state = 'R' AND t.line = 0 THEN t.key END,
                CASE WHEN a_state = 'R' THEN t.priority END,
                CASE WHEN a_state = 'T' THEN right(t.owner, 8) END COLLATE "C",
                CASE WHEN a_state = 'T' THEN t.call WHEN a_state IN ('B', 'D') THEN t.since
                    WHEN a_state IN ('W', 'Z') THEN nullif(t.due, 0) END NULLS LAST,
                CASE WHEN a_state = 'R' AND t.line > 0 THEN t.line
                    WHEN a_state IN ('R', 'B', 'D') THEN t.arrival END, t.id
            OFFSET (args->>'start')::bigint LIMIT (args->>'limit')::bigint) v;
    RETURN pressure_mp.tell_tasks('listed', listed, true);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.await_task(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, args jsonb, parts bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks := pressure_mp.get_task(q.id, parts[1]);
    r pressure_mp.reply;
    k pressure_mp.results;
    told text;
BEGIN
    SELECT * INTO k FROM pressure_mp.results v WHERE v.queue = q.id AND v.id = parts[1];
    DELETE FROM pressure_mp.watchers w WHERE w.slot = c.slot AND w.session = c.session
        RETURNING w.outcome INTO told;
    told := coalesce(told, CASE t.state WHEN 'Z' THEN 'processed' WHEN 'D' THEN 'processed'
        WHEN 'B' THEN 'buried' END, CASE WHEN t.id IS NULL THEN k.outcome END);
    IF told IS NOT NULL THEN
        r := pressure_mp.tell_tasks('finished',
            CASE WHEN t.id IS NULL THEN '{}' ELSE ARRAY[t] END, true,
            jsonb_build_object('outcome', told, 'token', k.token));
        r.items := r.items || coalesce(k.data, '');
        RETURN r;
    ELSIF t.id IS NULL THEN
        RETURN pressure_mp.said('absent');
    END IF;
    IF args ? 'waits' THEN
        PERFORM pressure_mp.watch(c, parts[1], moment);
    END IF;
    RETURN pressure_mp.tell_tasks('unprocessed', ARRAY[t], args ? 'whole');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.count_tasks(q pressure_mp.queues, moment bigint)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN pressure_mp.told('counts', jsonb_build_object('now', moment, 'created', q.created,
            'oldest', least(
                (SELECT min(t.created) FROM pressure_mp.tasks t
                    WHERE t.queue = q.id AND t.state = 'R' AND t.line > 0),
                (SELECT min(t.created) FROM pressure_mp.tasks t
                    WHERE t.queue = q.id AND t.state = 'R' AND t.key <> '')),
            'maxsize', (q.settings->>'maxsize')::bigint,
            'putting', (SELECT count(*) FROM pressure_mp.waiting w
                WHERE w.slot = q.slot AND w.line = 'p' AND w.place > q.passed),
            'closed', q.closed, 'paused', pressure_mp.texts(q.paused),
            'limits', (SELECT coalesce(jsonb_agg(jsonb_build_array(convert_from(l.tube, 'UTF8'),
                    l.number, l.per, l.used, coalesce(l.used_until, 0), false)), '[]')
                FROM pressure_mp.limits_of(q.id, moment) l),
            'key_limits', (SELECT coalesce(jsonb_agg(jsonb_build_array(convert_from(l.tube, 'UTF8'),
                    l.number, l.per, 0, 0, true)), '[]')
                FROM pressure_mp.limits l WHERE l.queue = q.id AND l.each_key),
            'numbers', (SELECT coalesce(jsonb_agg(w.number ORDER BY w.way), '[]')
                FROM pressure_mp.ways w WHERE w.queue = q.id)),
        (SELECT array_agg(w.way ORDER BY w.way) FROM pressure_mp.ways w WHERE w.queue = q.id),
        NULL);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.truncate_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, args jsonb) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    n bigint := 0;
BEGIN
    FOR t IN SELECT * FROM pressure_mp.tasks v WHERE v.queue = q.id
        LIMIT (args->>'limit')::bigint
    LOOP
        PERFORM pressure_mp.vanish(c.slot, moment, t, 'killed');
        n := n + 1;
    END LOOP;
    RETURN pressure_mp.said('number', to_jsonb(n));
END $$;

-- Requeue the tasks that an owner has taken. With "call" requeue only the tasks of that call, and
-- count it as no delivery. "parts" is the report.
CREATE OR REPLACE FUNCTION pressure_mp.requeue_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, args jsonb, parts bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    n bigint := 0;
    a_owner text := args->>'owner';
BEGIN
    IF args ? 'seen' AND NOT EXISTS (SELECT FROM pressure_mp.leases l WHERE l.queue = q.id
        AND l.role = 't' AND l.owner = a_owner AND l.until = (args->>'seen')::bigint)
    THEN
        RETURN pressure_mp.said('renewed');
    END IF;
    FOR t IN
        SELECT * FROM pressure_mp.tasks v
            WHERE v.queue = q.id AND v.state = 'T' AND v.owner = a_owner
                AND (NOT args ? 'call' OR v.call = (args->>'call')::bigint)
            ORDER BY v.call, v.id LIMIT (args->>'limit')::bigint
    LOOP
        t.deliveries := t.deliveries - (args ? 'call')::integer;
        PERFORM pressure_mp.give_back(q, c.slot, moment, t, parts[1], 0, NULL, NULL);
        n := n + 1;
    END LOOP;
    IF NOT args ? 'call' AND n < (args->>'limit')::bigint THEN
        DELETE FROM pressure_mp.leases l
            WHERE l.queue = q.id AND l.role = 't' AND l.owner = a_owner;
    END IF;
    RETURN pressure_mp.said('number', to_jsonb(n));
END $$;
