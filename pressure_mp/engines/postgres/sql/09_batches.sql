-- Requests to a queue of tasks that may have many tasks: to put, to take and to acknowledge them. Each
-- of their statements is for all tasks of a call. Tasks are found by subqueries for one id each, and
-- changed by the places of their rows: the planner takes the tables for empty, and would read a whole
-- queue for a join or a list of ids.

-- Make ids of so many numbers, from one on, that no task has.
CREATE OR REPLACE FUNCTION pressure_mp.free_ids(a_queue bigint, first bigint, n bigint)
RETURNS bytea[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    id bytea := convert_to(first::text, 'UTF8');
BEGIN
    IF n = 1 AND NOT pressure_mp.is_known(a_queue, id, '{}') THEN
        RETURN ARRAY[id];
    END IF;
    RETURN ARRAY(SELECT s.id FROM (
            SELECT convert_to(generate_series(first, 9223372036854775807)::text, 'UTF8') AS id) s
        WHERE (SELECT t.state FROM pressure_mp.tasks t WHERE t.queue = a_queue AND t.id = s.id)
            IS NULL
        LIMIT n);
END $$;

-- Whether these are different ids that no task has.
CREATE OR REPLACE FUNCTION pressure_mp.are_free(a_queue bigint, ids bytea[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT count(DISTINCT u.id) = cardinality(ids) AND bool_and(u.id <> '' AND (
            SELECT t.state FROM pressure_mp.tasks t WHERE t.queue = a_queue AND t.id = u.id)
            IS NULL)
        FROM unnest(ids) u (id));
END $$;

-- "parts" are the tube, the key, the ids if some are "chosen", where '' is for an id to be made, and the
-- data of each task. "uniques" are their unique keys, NULL if they have none; with "on_conflict" they are
-- among the parts, see put_unique.
CREATE OR REPLACE FUNCTION pressure_mp.put_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb, parts bytea[], uniques bytea[] DEFAULT NULL) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    delay bigint := (args->>'delay')::bigint;
    a_state text := CASE WHEN delay > 0 THEN 'W' ELSE 'R' END;
    ends bigint := CASE WHEN delay > 0 THEN moment + delay
        ELSE pressure_mp.lifetime(q, moment, (args->>'ttl')::bigint) END;
    a_priority double precision := (args->>'priority')::double precision;
    a_tube bytea := parts[1];
    a_key bytea := parts[2];
    a_result_ttl bigint := (args->>'result_ttl')::bigint;
    inboxes text[] := CASE WHEN args ? 'inbox' THEN ARRAY[args->>'inbox'] ELSE '{}' END;
    n bigint := cardinality(parts) - 2;
    -- The number of the arrival of the first.
    first bigint := greatest(q.arrival + 1, moment * 1000);
    ids bytea[];
    there text;
    space bigint;
BEGIN
    IF q.closed THEN
        RETURN pressure_mp.said('closed');
    END IF;
    IF args ? 'on_conflict' THEN
        RETURN pressure_mp.put_unique(q, c, moment, args, parts);
    END IF;
    IF args ? 'chosen' THEN
        n := n / 2;
    END IF;
    space := pressure_mp.space(q, c, args);
    IF space = 0 THEN
        RETURN pressure_mp.said('no_space', to_jsonb(pressure_mp.count_queued(q.id)));
    ELSIF n > space THEN
        parts := CASE WHEN args ? 'chosen' THEN parts[:2 + space] || parts[3 + n:] ELSE parts END;
        n := space;
    END IF;
    IF args ? 'chosen' THEN
        ids := parts[3:n + 2];
        IF NOT pressure_mp.are_free(q.id, ids) THEN
            SELECT * INTO ids, q.counter, there
                FROM pressure_mp.make_some_ids(q, first, args, ids, a_state);
            IF there IS NOT NULL THEN
                UPDATE pressure_mp.queues v
                    SET version = v.version + 1, counter = q.counter
                    WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
                RETURN pressure_mp.told('there', to_jsonb(there), ids, NULL);
            END IF;
        END IF;
        parts := parts[n + 3:2 * n + 2];
    ELSIF args->>'ids' = 'auto_increment' THEN
        ids := pressure_mp.free_ids(q.id, q.counter + 1, n);
        q.counter := convert_from(ids[n], 'UTF8')::bigint;
        parts := parts[3:n + 2];
    ELSE
        ids := pressure_mp.free_ids(q.id, first, n);
        parts := parts[3:n + 2];
    END IF;
    IF n = 1 THEN
        INSERT INTO pressure_mp.tasks VALUES (q.id, ids[1], a_state, a_priority, moment, moment, ends,
            0, 0, a_tube, '', '', parts[1], first, a_result_ttl, inboxes, a_key,
            CASE a_key WHEN '' THEN first ELSE 0 END, coalesce(uniques[1], ''));
        PERFORM pressure_mp.forget_result(q.id, v.id) FROM pressure_mp.results v
            WHERE v.queue = q.id AND v.id = ids[1];
    ELSE
        INSERT INTO pressure_mp.tasks SELECT q.id, u.id, a_state, a_priority, moment, moment, ends,
                0, 0, a_tube, '', '', u.data, first - 1 + u.o, a_result_ttl, inboxes, a_key,
                CASE a_key WHEN '' THEN first - 1 + u.o ELSE 0 END, coalesce(uniques[u.o], '')
            FROM unnest(ids, parts) WITH ORDINALITY u (id, data, o);
        PERFORM pressure_mp.forget_result(q.id, u.id) FROM unnest(ids) u (id)  -- of earlier tasks
            WHERE (SELECT v.outcome FROM pressure_mp.results v
                WHERE v.queue = q.id AND v.id = u.id) IS NOT NULL;
    END IF;
    PERFORM pressure_mp.count_way(q.id, 'X', a_state, a_tube, n);
    IF a_state = 'R' AND a_key = '' THEN
        PERFORM pressure_mp.note_ready(q.id, a_tube, a_priority, first);
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, counter = q.counter, arrival = first - 1 + n,
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

-- Make the missing ones of chosen ids, in order. "there" is the state of a task that has one of the
-- chosen ids, which is then alone in "ids".
CREATE OR REPLACE FUNCTION pressure_mp.make_some_ids(q pressure_mp.queues, first bigint, args jsonb,
    chosen bytea[], a_state text, OUT ids bytea[], OUT counter bigint, OUT there text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    new bytea;
    number bigint := first;
BEGIN
    ids := '{}';
    counter := q.counter;
    FOREACH new IN ARRAY chosen LOOP
        IF new <> '' THEN
            SELECT t.state INTO there FROM pressure_mp.tasks t WHERE t.queue = q.id AND t.id = new;
            there := coalesce(there, CASE WHEN new = ANY (ids) THEN a_state END);
            IF there IS NOT NULL THEN
                ids := ARRAY[new];
                RETURN;
            END IF;
        ELSIF args->>'ids' = 'auto_increment' THEN
            LOOP
                counter := counter + 1;
                new := convert_to(counter::text, 'UTF8');
                EXIT WHEN NOT pressure_mp.is_known(q.id, new, ids);
            END LOOP;
        ELSE
            -- The tasks in between are known: the last one passed them.
            number := greatest(first + cardinality(ids), number);
            LOOP
                new := convert_to(number::text, 'UTF8');
                number := number + 1;
                EXIT WHEN NOT pressure_mp.is_known(q.id, new, ids);
            END LOOP;
        END IF;
        ids := ids || new;
    END LOOP;
END $$;

-- Return the ready tasks at a task's priority from it on, in their order, in one tube unless that is
-- '': where their rows are, and what decides whether one take gets them.
CREATE OR REPLACE FUNCTION pressure_mp.ready_from(t pressure_mp.tasks, a_tube bytea, most bigint,
    paused bytea[])
RETURNS TABLE (at tid, line bigint, due bigint, deliveries bigint, size bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_tube = '' THEN
        RETURN QUERY SELECT v.ctid, v.line, v.due, v.deliveries, octet_length(v.data)::bigint
            FROM pressure_mp.tasks v
            WHERE v.queue = t.queue AND v.state = 'R' AND v.line > 0
                AND v.priority = t.priority AND v.line >= t.line AND v.tube <> ALL (paused)
            ORDER BY v.line LIMIT most;
    ELSE
        RETURN QUERY SELECT v.ctid, v.line, v.due, v.deliveries, octet_length(v.data)::bigint
            FROM pressure_mp.tasks v
            WHERE v.queue = t.queue AND v.state = 'R' AND v.line > 0 AND v.tube = a_tube
                AND v.priority = t.priority AND v.line >= t.line
            ORDER BY v.line LIMIT most;
    END IF;
END $$;

-- Take the next tasks of one priority, from the first ready one on, up to so many and so many bytes.
-- A task whose time is over ends them, and with "alone" one that was delivered before.
CREATE OR REPLACE FUNCTION pressure_mp.take_from(t pressure_mp.tasks, moment bigint, args jsonb,
    a_tube bytea, ends bigint, most bigint, room bigint, paused bytea[])
RETURNS pressure_mp.tasks[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    taken pressure_mp.tasks[];
    places tid[] := ARRAY(SELECT f.at FROM (
        SELECT v.at, v.line = t.line OR (sum(v.size) OVER w <= room
                AND bool_and(v.due = 0 OR v.due > moment) OVER w
                AND (NOT args ? 'retries_alone' OR bool_and(v.deliveries = 0) OVER w)) AS fits
            FROM pressure_mp.ready_from(t, a_tube, most, paused) v WINDOW w AS (ORDER BY v.line)) f
        WHERE f.fits);
BEGIN
    WITH changed AS (
        UPDATE pressure_mp.tasks v
            SET state = 'T', since = moment, due = ends, deliveries = v.deliveries + 1,
                call = (args->>'call')::bigint, owner = args->>'owner',
                line = CASE v.key WHEN '' THEN v.line ELSE 0 END
            FROM unnest(places) WITH ORDINALITY u (at, o) WHERE v.ctid = u.at RETURNING v, u.o
    )
    SELECT array_agg(g.v ORDER BY g.o) INTO taken FROM changed g;
    RETURN taken;
END $$;

-- "parts" are the tube, and the ids of the tasks to acknowledge first, with their results; see ack_tasks.
CREATE OR REPLACE FUNCTION pressure_mp.take_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb, parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    r pressure_mp.reply;
    later pressure_mp.reply;
    next pressure_mp.tasks[];
    taken pressure_mp.tasks[] := '{}';
    most bigint := least((args->>'limit')::bigint, 1000);
    room bigint := 1000000;
    ttr bigint := coalesce((args->>'ttr')::bigint, (q.settings->>'ttr')::bigint);
    ends bigint := CASE ttr WHEN 0 THEN 0 ELSE moment + ttr END;
    before bigint := q.arrival;
    acks integer := coalesce(jsonb_array_length(args->'calls'), 0);
    -- For the reply: the state of the acknowledged tasks, and the tasks that were refused.
    acked jsonb := '{}';
    paused bytea[] := q.paused;
    -- What the limits admit, by tube.
    shares jsonb := '{}';
    one_by_one boolean := false;
BEGIN
    IF acks > 0 THEN
        r := pressure_mp.ack_tasks(q, c, moment, args, parts[2:]);
        IF r.status <> 'acknowledged' THEN
            RETURN r;
        END IF;
        acked := r.info;
        IF acked->'refused' <> '{}' THEN
            IF (SELECT count(*) FROM jsonb_object_keys(acked->'refused')) = acks THEN
                RETURN pressure_mp.tell_tasks('taken', '{}', true, acked - 'processed');
            END IF;
        END IF;
    END IF;
    IF args ? 'retries_alone' AND ((q.settings->>'per_key')::bigint > 0
        OR (q.settings->>'max_deliveries')::bigint IN (1, 2))
    THEN
        most := 1;
    END IF;
    IF q.limited THEN
        shares := pressure_mp.look_at_limits(q, moment);
        q.paused := paused || pressure_mp.used_up(shares);
        most := least(most, (shares->>'')::bigint, (shares->>encode(parts[1], 'hex'))::bigint);
        one_by_one := parts[1] = '' AND (SELECT count(*) FROM jsonb_object_keys(shares - '')) > 0;
    END IF;
    WHILE cardinality(taken) < most LOOP
        t := pressure_mp.first_ready(q, parts[1]);
        EXIT WHEN t.id IS NULL;
        IF t.due > 0 AND t.due <= moment THEN
            PERFORM pressure_mp.vanish(c.slot, moment, t, 'dropped');
            CONTINUE;
        END IF;
        EXIT WHEN cardinality(taken) > 0 AND octet_length(t.data) > room;
        EXIT WHEN args ? 'retries_alone' AND cardinality(taken) > 0
            AND (t.deliveries > 0 OR taken[1].deliveries > 1);
        IF cardinality(taken) + 1 = most OR one_by_one OR (args ? 'retries_alone' AND t.deliveries > 0) THEN
            UPDATE pressure_mp.tasks v
                SET state = 'T', since = moment, due = ends, deliveries = v.deliveries + 1,
                    call = (args->>'call')::bigint, owner = args->>'owner',
                    line = CASE t.key WHEN '' THEN t.line ELSE 0 END
                WHERE v.queue = q.id AND v.id = t.id RETURNING * INTO t;
            room := room - octet_length(t.data);
            IF q.limited THEN
                PERFORM pressure_mp.note_key_delivery(t, moment);
            END IF;
            q.arrival := pressure_mp.begin_group(q.slot, t, q.arrival, moment);
            taken := taken || t;
            IF one_by_one THEN
                shares := pressure_mp.use_share(shares, t.tube);
                q.paused := paused || pressure_mp.used_up(shares);
            END IF;
            CONTINUE;
        END IF;
        next := pressure_mp.take_from(t, moment, args, parts[1], ends, most - cardinality(taken),
            room, q.paused);
        FOREACH t IN ARRAY next LOOP
            room := room - octet_length(t.data);
            IF q.limited THEN
                PERFORM pressure_mp.note_key_delivery(t, moment);
            END IF;
            q.arrival := pressure_mp.begin_group(q.slot, t, q.arrival, moment);
        END LOOP;
        taken := taken || next;
    END LOOP;
    IF q.limited THEN
        IF parts[1] = '' THEN
            PERFORM pressure_mp.pass_by(q.id, q.paused);
        END IF;
        q.paused := paused;
    END IF;
    IF cardinality(taken) > 0 THEN
        IF q.arrival > before OR (ends > 0 AND ends <= q.due_from) THEN
            UPDATE pressure_mp.queues v SET version = v.version + 1, arrival = q.arrival,
                    due_from = CASE ends WHEN 0 THEN v.due_from ELSE least(v.due_from, ends - 1) END
                WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
        END IF;
        IF most = 1 THEN
            PERFORM pressure_mp.count_way(q.id, 'R', 'T', t.tube);
        ELSE
            PERFORM pressure_mp.count_ways(q.id, 'R', 'T', taken);
        END IF;
        IF most > 1 OR cardinality(t.inboxes) > 0 THEN
            PERFORM pressure_mp.tell_inboxes(taken, 'taken');
        END IF;
        PERFORM pressure_mp.renew_lease(q.id, 't', args->>'owner', c.lease);
        IF q.limited THEN
            PERFORM pressure_mp.note_deliveries(q.id, taken, moment);
        END IF;
    ELSIF acks = 0 THEN
        RETURN pressure_mp.no_task(q, moment, ttr, parts[1]);
    END IF;
    r := pressure_mp.tell_tasks('taken', taken, true, acked);
    IF cardinality(taken) = 0 AND NOT args ? 'waits' THEN
        later := pressure_mp.no_task(q, moment, ttr, parts[1]);
        IF later.status = 'no_task' THEN
            r.info := r.info || later.info;
        END IF;
    END IF;
    RETURN r;
END $$;

-- Return the reply to a take that was made before, of which that was kept: with the tasks that are
-- still taken by it.
CREATE OR REPLACE FUNCTION pressure_mp.repeat_take(a_queue bigint, args jsonb, kept pressure_mp.reply)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r pressure_mp.reply := pressure_mp.tell_tasks('taken', ARRAY(SELECT v FROM pressure_mp.tasks v
        WHERE v.queue = a_queue AND v.state = 'T' AND v.owner = args->>'owner'
            AND v.call = (args->>'call')::bigint
        ORDER BY v.priority, v.arrival), true);
BEGIN
    RETURN pressure_mp.told('taken', r.info || coalesce(kept.info, '{}'), r.items, NULL);
END $$;

-- Return the reply to a take that finds no task: with the time until one may be ready.
CREATE OR REPLACE FUNCTION pressure_mp.no_task(q pressure_mp.queues, moment bigint, ttr bigint,
    a_tube bytea) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    due_past bigint := greatest(q.swept, q.due_from);
    first_due bigint;
    later bigint;
    wait bigint;
BEGIN
    IF q.closed AND NOT pressure_mp.has_withheld(q, a_tube) THEN
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
    IF q.limited THEN
        wait := pressure_mp.admitted_after(q, moment, moment + wait - 1) - moment + 1;
    END IF;
    RETURN pressure_mp.said('no_task', jsonb_build_object('due', wait));
END $$;

-- Return the state of the tasks of a queue that were processed.
CREATE OR REPLACE FUNCTION pressure_mp.state_processed(q pressure_mp.queues) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN (q.settings->>'keep')::boolean THEN 'D'
        WHEN (q.settings->>'zombie')::bigint <> 0 THEN 'Z' ELSE 'X' END
$$;

-- Return the reply to an acknowledgement of tasks: their state, since when they are in it, and its end;
-- and the reasons for the others.
CREATE OR REPLACE FUNCTION pressure_mp.acknowledged(after text, since bigint, due bigint, refused jsonb)
RETURNS pressure_mp.reply LANGUAGE sql IMMUTABLE AS $$
    SELECT pressure_mp.said('acknowledged', jsonb_build_object('processed',
        jsonb_build_array(after, since, due), 'refused', refused))
$$;

-- Find the tasks to acknowledge by "args", as in ack_tasks. For each, in order: where its row is; the
-- task, with its result in place of its data; and the reason why the owner does not have it, as
-- not_held says. An owner has an id that comes twice only once.
CREATE OR REPLACE FUNCTION pressure_mp.find_held(q pressure_mp.queues, args jsonb, parts bytea[])
RETURNS TABLE (o bigint, at tid, t pressure_mp.tasks, problem text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    calls bigint[] := ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(args->'calls') v);
    n integer := cardinality(calls);
    an_owner text := args->>'owner';
    after text := pressure_mp.state_processed(q);
BEGIN
    RETURN QUERY SELECT u.o, f.ctid,
        ROW(f.queue, f.id, f.state, f.priority, f.created, f.since, f.due, f.deliveries, f.call,
            f.tube, f.owner, f.report, coalesce(u.result, ''), f.arrival, f.result_ttl, f.inboxes,
            f.key, f.line, f.unique_key)::pressure_mp.tasks,
        CASE WHEN f.id IS NULL THEN 'absent'
            WHEN f.state <> 'T' THEN 'other_state'
            WHEN f.owner <> an_owner OR f.call <> u.call THEN 'other_owner'
            WHEN u.nth = 1 THEN NULL
            WHEN after = 'X' THEN 'absent' ELSE 'other_state' END
        FROM (SELECT *, row_number() OVER (PARTITION BY v.id, v.call ORDER BY v.o) AS nth
            FROM unnest(parts[:n], calls, parts[n + 1:]) WITH ORDINALITY v (id, call, result, o)) u
        LEFT JOIN LATERAL (SELECT v.ctid, v.* FROM pressure_mp.tasks v
            WHERE v.queue = q.id AND v.id = u.id OFFSET 0) f ON true;
END $$;

-- Return the reason why a task is not acknowledged, for the reply.
CREATE OR REPLACE FUNCTION pressure_mp.problem(q pressure_mp.queues, t pressure_mp.tasks, problem text)
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_array(problem, CASE WHEN problem <> 'other_state' THEN ''
        WHEN t.state = 'T' THEN pressure_mp.state_processed(q) ELSE t.state END)
$$;

-- Return the reasons why the owner does not have tasks; "parts" are their ids, "calls" the takes.
CREATE OR REPLACE FUNCTION pressure_mp.not_had(q pressure_mp.queues, args jsonb, parts bytea[])
RETURNS jsonb LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(jsonb_object_agg(f.o - 1, pressure_mp.problem(q, f.t, f.problem))
            FILTER (WHERE f.problem IS NOT NULL), '{}')
        FROM pressure_mp.find_held(q, args, parts) f WHERE args ? 'calls'
$$;

-- "parts" are the ids, and with "results" the result of each, '' for none. "tokens" in the arguments
-- has the tokens of their contents, by the place of a task, from 0 on; "calls" are the takes. The
-- reply has the reasons for tasks that were not acknowledged.
CREATE OR REPLACE FUNCTION pressure_mp.ack_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    args jsonb, parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    after text := pressure_mp.state_processed(q);
    ends bigint := CASE after WHEN 'Z'
        THEN pressure_mp.zombie_until(moment, (q.settings->>'zombie')::bigint) ELSE 0 END;
    problems jsonb := '{}';
    places tid[];
    held pressure_mp.tasks[];
    t pressure_mp.tasks;
    r pressure_mp.reply;
    place integer;
    token text;
BEGIN
    IF args ? 'tokens' THEN
        IF EXISTS (SELECT FROM jsonb_each_text(args->'tokens') v
            WHERE NOT pressure_mp.has_content(q.id, v.value))
        THEN
            RETURN pressure_mp.said('lost');
        END IF;
    END IF;
    IF jsonb_array_length(args->'calls') = 1 THEN
        t := pressure_mp.get_task(q.id, parts[1]);
        r := pressure_mp.not_held(t, args->>'owner', (args->'calls'->>0)::bigint);
        IF r.status IS NOT NULL THEN
            problems := jsonb_build_object(0, pressure_mp.problem(q, t, r.status));
        ELSE
            t := pressure_mp.process(q, c.slot, moment, t, NULL, NULL);
            PERFORM pressure_mp.say_result(t, coalesce(parts[2], ''), args->'tokens'->>'0');
        END IF;
        RETURN pressure_mp.acknowledged(after, moment, ends, problems);
    END IF;
    SELECT coalesce(jsonb_object_agg(f.o - 1, pressure_mp.problem(q, f.t, f.problem))
            FILTER (WHERE f.problem IS NOT NULL), '{}'),
        array_agg(f.at ORDER BY f.o) FILTER (WHERE f.problem IS NULL),
        array_agg(f.t ORDER BY f.o) FILTER (WHERE f.problem IS NULL)
        INTO problems, places, held
        FROM pressure_mp.find_held(q, args, parts) f;
    IF places IS NULL THEN
        RETURN pressure_mp.acknowledged(after, moment, ends, problems);
    END IF;
    IF after = 'X' THEN
        DELETE FROM pressure_mp.tasks v WHERE v.ctid = ANY (places);
    ELSE
        UPDATE pressure_mp.tasks v SET state = after, since = moment, due = ends, owner = '',
            call = 0, line = CASE v.key WHEN '' THEN v.line ELSE 0 END WHERE v.ctid = ANY (places);
    END IF;
    IF ends > 0 THEN
        PERFORM pressure_mp.note_due(c.slot, q.id, ends);
    END IF;
    PERFORM pressure_mp.count_ways(q.id, 'T', after, held);
    PERFORM pressure_mp.settle_group(c.slot, q.id, k.tube, k.key)
        FROM (SELECT DISTINCT u.tube, u.key FROM unnest(held) u WHERE u.key <> '') k;
    PERFORM pressure_mp.conclude_all(c.slot, moment, held, 'processed');
    FOR place, token IN SELECT v.key, v.value FROM jsonb_each_text(args->'tokens') v LOOP
        SELECT * INTO t FROM unnest(held) u WHERE u.id = parts[place + 1];
        CONTINUE WHEN t.id IS NULL;
        t.state := after;
        PERFORM pressure_mp.say_result(t, t.data, token);
    END LOOP;
    RETURN pressure_mp.acknowledged(after, moment, ends, problems);
END $$;

-- Tell the sessions that wait for tasks that these were taken until now and ended, and keep their
-- results, as keep_results does.
CREATE OR REPLACE FUNCTION pressure_mp.conclude_all(a_slot bigint, moment bigint,
    ended pressure_mp.tasks[], a_outcome text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w pressure_mp.watchers;
BEGIN
    FOR w IN
        UPDATE pressure_mp.watchers v SET outcome = a_outcome
            WHERE v.ctid = ANY (ARRAY(SELECT f.at FROM unnest(ended) e, LATERAL (
                SELECT x.ctid AS at FROM pressure_mp.watchers x
                    WHERE x.slot = a_slot AND x.task = e.id AND x.outcome IS NULL OFFSET 0) f))
            RETURNING *
    LOOP
        PERFORM pressure_mp.tell(w.listener, w.session, NULL);
    END LOOP;
    PERFORM pressure_mp.release_key(e, moment) FROM unnest(ended) e WHERE e.unique_key <> '';
    PERFORM pressure_mp.keep_results(moment, ended, a_outcome);
END $$;
