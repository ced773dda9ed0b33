-- Requests to a queue of tasks.

CREATE OR REPLACE FUNCTION pressure_mp.open_tasks(q pressure_mp.queues, a_prefix text, a_name text,
    args jsonb) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.id IS NULL THEN
        IF args->>'how' = 'attach' THEN
            RETURN pressure_mp.said('missing');
        END IF;
        INSERT INTO pressure_mp.queues (slot, prefix, kind, name, discipline, settings, created)
            VALUES (pressure_mp.slot(a_prefix, 'tasks', a_name), a_prefix, 'tasks', a_name,
                'tasks', args->'settings', pressure_mp.clock())
            RETURNING * INTO q;
    ELSIF args->>'how' = 'create' THEN
        RETURN pressure_mp.said('existing', q.settings);
    END IF;
    PERFORM pressure_mp.enlist(q, args);
    RETURN pressure_mp.said('opened', q.settings);
END $$;

-- "parts" are the tube, the key, and the id and data of each task.
CREATE OR REPLACE FUNCTION pressure_mp.put_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb, parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    delay bigint := (args->>'delay')::bigint;
    a_state text := CASE WHEN delay > 0 THEN 'W' ELSE 'R' END;
    ends bigint := CASE WHEN delay > 0 THEN moment + delay
        ELSE pressure_mp.lifetime(q, moment, (args->>'ttl')::bigint) END;
    a_tube bytea := parts[1];
    a_key bytea := parts[2];
    n bigint := (cardinality(parts) - 2) / 2;
    ids bytea[] := '{}';
    new bytea;
    there text;
    number bigint;
    a_arrival bigint := q.arrival;
BEGIN
    IF q.closed THEN
        RETURN pressure_mp.said('closed');
    END IF;
    FOR at IN 1 .. n LOOP
        new := parts[2 * at + 1];
        IF new <> '' THEN
            SELECT t.state INTO there FROM pressure_mp.tasks t WHERE t.queue = q.id AND t.id = new;
            IF there IS NOT NULL OR (n > 1 AND new = ANY (ids)) THEN
                UPDATE pressure_mp.queues v
                    SET version = v.version + 1, counter = q.counter
                    WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
                RETURN pressure_mp.told('there', to_jsonb(coalesce(there, a_state)), ARRAY[new], NULL);
            END IF;
        ELSIF args->>'ids' = 'auto_increment' THEN
            LOOP
                q.counter := q.counter + 1;
                new := convert_to(q.counter::text, 'UTF8');
                EXIT WHEN NOT pressure_mp.is_known(q.id, new, ids);
            END LOOP;
        ELSE
            -- The tasks in between are known: the last one passed them.
            number := greatest(moment * 1000, a_arrival + 1 + cardinality(ids), number + 1);
            LOOP
                new := convert_to(number::text, 'UTF8');
                EXIT WHEN NOT pressure_mp.is_known(q.id, new, ids);
                number := number + 1;
            END LOOP;
        END IF;
        ids := ids || new;
    END LOOP;
    FOR at IN 1 .. n LOOP
        a_arrival := greatest(a_arrival + 1, moment * 1000);
        INSERT INTO pressure_mp.tasks VALUES (q.id, ids[at], a_state,
            (args->>'priority')::double precision, moment, moment, ends, 0, 0, a_tube, '', '',
            parts[2 * at + 2], a_arrival, (args->>'result_ttl')::bigint,
            CASE WHEN args ? 'inbox' THEN ARRAY[args->>'inbox'] ELSE '{}' END,
            a_key, CASE a_key WHEN '' THEN a_arrival ELSE 0 END);
    END LOOP;
    -- Results of earlier tasks with these ids.
    PERFORM pressure_mp.forget_result(q.id, v.id) FROM pressure_mp.results v
        WHERE v.queue = q.id AND v.id = ANY (ids);
    PERFORM pressure_mp.count_way(q.id, 'X', a_state, a_tube, n);
    IF a_state = 'R' AND a_key = '' THEN
        PERFORM pressure_mp.note_ready(q.id, a_tube, (args->>'priority')::double precision,
            greatest(q.arrival + 1, moment * 1000));
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, counter = q.counter, arrival = a_arrival,
            due_from = CASE ends WHEN 0 THEN v.due_from ELSE least(v.due_from, ends - 1) END
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    IF a_state = 'R' AND a_key <> '' THEN
        PERFORM pressure_mp.settle_group(q.slot, q.id, a_tube, a_key);
    END IF;
    IF args ? 'awaited' THEN
        DELETE FROM pressure_mp.watchers w WHERE w.slot = c.slot AND w.seen < moment - 86400000;
        PERFORM pressure_mp.watch(c, ids[1], moment);
    END IF;
    RETURN pressure_mp.told('ids', NULL, ids, NULL);
END $$;

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

-- "parts" are the tube, and the id of a task to acknowledge first, with its result.
CREATE OR REPLACE FUNCTION pressure_mp.take_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb, parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    r pressure_mp.reply;
    taken pressure_mp.tasks[] := '{}';
    acknowledged pressure_mp.tasks;
    most bigint := least((args->>'limit')::bigint, 1000);
    room bigint := 1000000;
    ttr bigint := coalesce((args->>'ttr')::bigint, (q.settings->>'ttr')::bigint);
    due_past bigint := greatest(q.swept, q.due_from);
    first_due bigint;
    later bigint;
    wait bigint;
BEGIN
    IF args ? 'ack' THEN
        acknowledged := pressure_mp.get_task(q.id, parts[2]);
        r := pressure_mp.not_held(acknowledged, args->>'owner', (args->>'ack')::bigint);
        IF r.status IS NOT NULL THEN
            RETURN r;
        END IF;
        IF NOT pressure_mp.has_content(q.id, args->>'token') THEN
            RETURN pressure_mp.said('lost');
        END IF;
        acknowledged := pressure_mp.process(q, c.slot, moment, acknowledged, NULL, NULL);
        PERFORM pressure_mp.say_result(acknowledged, parts[3], args->>'token');
    END IF;
    WHILE cardinality(taken) < most LOOP
        t := pressure_mp.first_ready(q.id, parts[1]);
        EXIT WHEN t.id IS NULL;
        IF t.due > 0 AND t.due <= moment THEN
            PERFORM pressure_mp.vanish(c.slot, moment, t, 'dropped');
            CONTINUE;
        END IF;
        EXIT WHEN cardinality(taken) > 0 AND octet_length(t.data) > room;
        EXIT WHEN args ? 'retries_alone' AND cardinality(taken) > 0
            AND (t.deliveries > 0 OR taken[1].deliveries > 1);
        room := room - octet_length(t.data);
        UPDATE pressure_mp.tasks v
            SET state = 'T', since = moment, due = CASE ttr WHEN 0 THEN 0 ELSE moment + ttr END,
                deliveries = v.deliveries + 1, call = (args->>'call')::bigint,
                owner = args->>'owner', line = CASE t.key WHEN '' THEN t.line ELSE 0 END
            WHERE v.queue = q.id AND v.id = t.id RETURNING * INTO t;
        IF t.key <> '' THEN
            q.arrival := greatest(q.arrival + 1, moment * 1000);
            UPDATE pressure_mp.queues v SET version = v.version + 1, arrival = q.arrival
                WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
            PERFORM pressure_mp.begin_group(q.slot, t, q.arrival);
        END IF;
        IF t.due > 0 AND t.due <= q.due_from THEN
            PERFORM pressure_mp.note_due(q.slot, q.id, t.due);
            q.due_from := t.due - 1;
        END IF;
        PERFORM pressure_mp.count_way(q.id, 'R', 'T', t.tube);
        PERFORM pressure_mp.tell_inboxes(t, 'taken');
        taken := taken || t;
    END LOOP;
    IF cardinality(taken) > 0 THEN
        PERFORM pressure_mp.renew_lease(q.id, 't', args->>'owner', c.lease);
    END IF;
    IF cardinality(taken) > 0 OR args ? 'ack' THEN
        IF args ? 'ack' THEN
            RETURN pressure_mp.tell_tasks('taken', taken || acknowledged, true,
                '{"acknowledged": true}');
        END IF;
        RETURN pressure_mp.tell_tasks('taken', taken, true);
    END IF;
    IF q.closed AND NOT pressure_mp.has_keyed(q.id, parts[1]) THEN
        RETURN pressure_mp.said('closed');
    END IF;
    SELECT v.due INTO first_due FROM pressure_mp.tasks v
        WHERE v.queue = q.id AND v.due > 0 AND v.due > due_past ORDER BY v.due LIMIT 1;
    later := least(first_due - 1, moment + ttr);  -- a later time would be set back by the next take
    IF later >= due_past + 100 THEN  -- not each time
        UPDATE pressure_mp.queues v SET version = v.version + 1, due_from = later
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    END IF;
    SELECT greatest(v.due - moment, 0) + 1 INTO wait FROM pressure_mp.tasks v
        WHERE v.queue = q.id AND v.due > 0 AND v.due >= first_due AND v.state IN ('W', 'T')
        ORDER BY v.due LIMIT 1;
    RETURN pressure_mp.said('no_task', jsonb_build_object('due', wait));
END $$;

-- Settle one taken task. "parts" are its id, a tube, an error, new data, the data from which that
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
    IF NOT (a_op = 'touch' AND (args->>'call')::bigint = 0 AND t.state IS NOT DISTINCT FROM 'R')
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
        t := pressure_mp.give_back(q, c.slot, moment, t, parts[3], delay, a_ttl, a_tube);
    WHEN 'bury' THEN
        IF parts[3] <> '' THEN
            t.error := parts[3];
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
    END CASE;
    IF a_op <> 'touch' THEN
        PERFORM pressure_mp.say_result(t, parts[6], args->>'token');
    END IF;
    RETURN pressure_mp.tell_tasks('task', ARRAY[t], args ? 'whole');
END $$;

-- "parts" are the ids, and the results of some: "results" in the arguments has, by the place of a
-- task, from 0 on, the place of its result among the parts, and the token of its content. "calls"
-- are the takes. The reply has the reasons for tasks that were not acknowledged.
CREATE OR REPLACE FUNCTION pressure_mp.ack_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb, parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    r pressure_mp.reply;
    problems jsonb := '{}';
    said jsonb;
BEGIN
    FOR said IN SELECT v.value FROM jsonb_each(args->'results') v LOOP
        IF NOT pressure_mp.has_content(q.id, said->>1) THEN
            RETURN pressure_mp.said('lost');
        END IF;
    END LOOP;
    FOR at IN 1 .. jsonb_array_length(args->'calls') LOOP
        t := pressure_mp.get_task(q.id, parts[at]);
        r := pressure_mp.not_held(t, args->>'owner', (args->'calls'->>(at - 1))::bigint);
        IF r.status IS NULL THEN
            t := pressure_mp.process(q, c.slot, moment, t, NULL, NULL);
            said := args->'results'->((at - 1)::text);
            IF said IS NOT NULL THEN
                PERFORM pressure_mp.say_result(t, parts[(said->>0)::integer], said->>1);
            END IF;
        ELSE
            problems := problems || jsonb_build_object(at - 1, jsonb_build_array(r.status,
                CASE r.status WHEN 'other_state' THEN r.info ELSE '""' END));
        END IF;
    END LOOP;
    RETURN pressure_mp.said('problems', problems);
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
            'closed', q.closed,
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

-- Requeue the tasks that an owner has taken. "parts" is the error.
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
        PERFORM pressure_mp.give_back(q, c.slot, moment, t, parts[1], 0, NULL, NULL);
        n := n + 1;
    END LOOP;
    IF NOT args ? 'call' AND n < (args->>'limit')::bigint THEN
        DELETE FROM pressure_mp.leases l
            WHERE l.queue = q.id AND l.role = 't' AND l.owner = a_owner;
    END IF;
    RETURN pressure_mp.said('number', to_jsonb(n));
END $$;
