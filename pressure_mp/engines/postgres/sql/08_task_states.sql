-- The transitions of tasks, which are counted. Each function returns the task after the transition.
-- "moment" is the time of the call.

CREATE OR REPLACE FUNCTION pressure_mp.count_one(a_queue bigint, a_way bytea, n bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    total bigint := n;
BEGIN
    UPDATE pressure_mp.ways w SET number = w.number + n
        WHERE w.ctid = (SELECT v.ctid FROM pressure_mp.ways v
            WHERE v.queue = a_queue AND v.way = a_way ORDER BY v.part DESC LIMIT 1)
        RETURNING w.number INTO total;
    IF NOT FOUND THEN
        total := n;
        INSERT INTO pressure_mp.ways VALUES (a_queue, a_way, n);
    END IF;
    RETURN total;
END $$;

-- Count a transition. Returns the number of these so far.
CREATE OR REPLACE FUNCTION pressure_mp.count_way(a_queue bigint, a_before text, a_after text,
    a_tube bytea, n bigint DEFAULT 1) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    way bytea := convert_to(a_before || '-' || a_after, 'UTF8');
BEGIN
    IF a_tube <> '' THEN
        PERFORM pressure_mp.count_one(a_queue, way || decode('20', 'hex') || a_tube, n);
    END IF;
    RETURN pressure_mp.count_one(a_queue, way, n);
END $$;

-- Count the transition of these tasks, as they are before or after it.
CREATE OR REPLACE FUNCTION pressure_mp.count_ways(a_queue bigint, a_before text, a_after text,
    tasks pressure_mp.tasks[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    way bytea := convert_to(a_before || '-' || a_after, 'UTF8');
BEGIN
    PERFORM pressure_mp.count_one(a_queue, way || decode('20', 'hex') || k.tube, k.n)
        FROM (SELECT t.tube, count(*) AS n FROM unnest(tasks) t WHERE t.tube <> ''
            GROUP BY t.tube) k;
    PERFORM pressure_mp.count_one(a_queue, way, cardinality(tasks));
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.count_in_tube(a_queue bigint, a_before text, a_after text,
    a_tube bytea) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_tube <> '' THEN
        PERFORM pressure_mp.count_one(a_queue,
            convert_to(a_before || '-' || a_after || ' ', 'UTF8') || a_tube, 1);
    END IF;
END $$;

-- Count the transition of a task from one tube to another.
CREATE OR REPLACE FUNCTION pressure_mp.count_shift(a_queue bigint, a_before text, a_after text,
    a_old bytea,
    a_new bytea) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pressure_mp.count_in_tube(a_queue, a_before, 'S', a_old);
    PERFORM pressure_mp.count_in_tube(a_queue, 'S', a_after, a_new);
    IF a_before <> a_after THEN
        PERFORM pressure_mp.count_way(a_queue, a_before, a_after, '');
    END IF;
END $$;

-- Count the ready tasks, in one tube unless that is '', from the counts of the transitions.
CREATE OR REPLACE FUNCTION pressure_mp.count_ready(a_queue bigint, a_tube bytea)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ends bytea := CASE a_tube WHEN '' THEN '' ELSE decode('20', 'hex') || a_tube END;
BEGIN
    RETURN pressure_mp.said('number', to_jsonb((SELECT coalesce(sum(s.sign * f.number), 0)::bigint
        FROM unnest(ARRAY['X', 'W', 'T', 'B', 'Z', 'D', 'S']) state,
            LATERAL (VALUES (state || '-R', 1), ('R-' || state, -1)) s (way, sign),
            LATERAL (SELECT w.number FROM pressure_mp.ways w
                WHERE w.queue = a_queue AND w.way = convert_to(s.way, 'UTF8') || ends
                ORDER BY w.part DESC LIMIT 1) f)));
END $$;

-- Count the tasks that are ready or waiting, which the bound counts.
CREATE OR REPLACE FUNCTION pressure_mp.count_queued(a_queue bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT coalesce(sum(s.sign * f.number), 0)::bigint
        FROM unnest(ARRAY['X', 'T', 'B', 'Z', 'D']) other, unnest(ARRAY['R', 'W']) state,
            LATERAL (VALUES (other || '-' || state, 1), (state || '-' || other, -1)) s (way, sign),
            LATERAL (SELECT w.number FROM pressure_mp.ways w
                WHERE w.queue = a_queue AND w.way = convert_to(s.way, 'UTF8')
                ORDER BY w.part DESC LIMIT 1) f);
END $$;

-- Return for how many tasks of a call there is space.
CREATE OR REPLACE FUNCTION pressure_mp.space(q pressure_mp.queues, c pressure_mp.caller, args jsonb)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    bound bigint := (q.settings->>'maxsize')::bigint;
BEGIN
    IF bound = 0 OR args ? 'overfill' THEN
        RETURN 9223372036854775807;
    ELSIF args ? 'waits' AND NOT pressure_mp.is_next(c, 'p') THEN
        RETURN 0;
    END IF;
    RETURN greatest(bound - pressure_mp.count_queued(q.id), 0);
END $$;

-- Wake the first session that waits for space, if there is space; or all, if more than the tasks of the
-- queue was changed.
CREATE OR REPLACE FUNCTION pressure_mp.wake_putters(q pressure_mp.queues, a_op text, own bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM pressure_mp.waiting w WHERE w.slot = q.slot AND w.line = 'p' AND w.place > q.passed
        LIMIT 1;
    IF NOT FOUND THEN
        PERFORM pressure_mp.note_line(q.slot, false);
    ELSIF a_op IN ('configure', 'close', 'delete', 'dismiss') THEN
        PERFORM pressure_mp.wake_all(q.slot, 'p', own);
    ELSIF pressure_mp.count_queued(q.id) < (q.settings->>'maxsize')::bigint THEN
        PERFORM pressure_mp.wake_first(q.slot, 'p', own);
    END IF;
END $$;

-- Tell the sessions that wait for the task its outcome, and keep its result, if that is to be kept.
-- The removal of a task that had ended before is no new outcome.
CREATE OR REPLACE FUNCTION pressure_mp.conclude(a_slot bigint, moment bigint, t pressure_mp.tasks,
    a_outcome text, before text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w pressure_mp.watchers;
    had text := CASE before WHEN 'Z' THEN 'processed' WHEN 'D' THEN 'processed'
        WHEN 'B' THEN 'buried' END;
BEGIN
    IF t.unique_key <> '' THEN
        PERFORM pressure_mp.release_key(t, moment);
    END IF;
    FOR w IN
        UPDATE pressure_mp.watchers v SET outcome = a_outcome
            WHERE v.slot = a_slot AND v.task = t.id AND v.outcome IS NULL RETURNING *
    LOOP
        PERFORM pressure_mp.tell(w.listener, w.session, NULL);
    END LOOP;
    IF (t.result_ttl <> 0 OR cardinality(t.inboxes) > 0)
        AND (had IS NULL OR (t.state <> 'X' AND had <> a_outcome))
    THEN
        t.data := '';  -- say_result sets the result
        PERFORM pressure_mp.keep_results(moment, ARRAY[t], a_outcome);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.lifetime(q pressure_mp.queues, moment bigint, a_ttl bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN coalesce(a_ttl, (q.settings->>'ttl')::bigint) = 0 THEN 0
        ELSE moment + coalesce(a_ttl, (q.settings->>'ttl')::bigint) END
$$;

-- Put the right task of a group into the line after a change of one of its tasks: the first ready
-- one, unless as many are taken as the queue allows.
CREATE OR REPLACE FUNCTION pressure_mp.settle_group(a_slot bigint, a_queue bigint, a_tube bytea,
    a_key bytea) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l pressure_mp.groups;
    first pressure_mp.tasks;
    next pressure_mp.tasks;
    q pressure_mp.queues;
    taken bigint;
    most bigint;
    used_until bigint;
    is_full boolean;
BEGIN
    SELECT * INTO q FROM pressure_mp.queues v
        WHERE v.slot = a_slot AND v.id = a_queue ORDER BY v.version DESC LIMIT 1;
    most := (q.settings->>'per_key')::bigint;
    SELECT * INTO l FROM pressure_mp.groups v
        WHERE v.queue = a_queue AND v.tube = a_tube AND v.key = a_key;
    SELECT count(*) INTO taken FROM (SELECT FROM pressure_mp.tasks v
        WHERE v.queue = a_queue AND v.tube = a_tube AND v.key = a_key AND v.key <> ''
            AND v.state = 'T' LIMIT greatest(most, 1)) t;
    SELECT * INTO first FROM pressure_mp.tasks v WHERE v.queue = a_queue AND v.id = l.first
        AND v.tube = a_tube AND v.state = 'R' AND v.line > 0;
    SELECT * INTO next FROM pressure_mp.tasks v
        WHERE v.queue = a_queue AND v.tube = a_tube AND v.key = a_key AND v.key <> ''
            AND v.state = 'R' AND v.line = 0
        ORDER BY v.priority, v.arrival LIMIT 1;
    IF q.limited THEN
        used_until := pressure_mp.key_used_until(a_queue, a_tube, a_key);
    END IF;
    is_full := (most > 0 AND taken >= most) OR used_until IS NOT NULL;
    IF first.id IS NOT NULL AND (is_full
        OR (next.priority, next.arrival) < (first.priority, first.arrival))
    THEN
        UPDATE pressure_mp.tasks v SET line = 0 WHERE v.queue = a_queue AND v.id = first.id;
        next := CASE WHEN next.id IS NULL THEN first ELSE next END;
        first := NULL;
    END IF;
    IF first.id IS NULL AND next.id IS NOT NULL AND NOT is_full THEN
        first := next;
        first.line := greatest(first.arrival, l.last);
        UPDATE pressure_mp.tasks v SET line = first.line
            WHERE v.queue = a_queue AND v.id = first.id;
        PERFORM pressure_mp.note_ready(a_queue, a_tube, first.priority, first.line);
    END IF;
    IF first.id IS NULL AND next.id IS NULL AND taken = 0 THEN
        DELETE FROM pressure_mp.groups v
            WHERE v.queue = a_queue AND v.tube = a_tube AND v.key = a_key;
    ELSE
        INSERT INTO pressure_mp.groups VALUES (a_queue, a_tube, a_key, coalesce(l.last, 0), first.id,
            CASE WHEN first.id IS NULL AND next.id IS NOT NULL THEN coalesce(used_until, 0) ELSE 0 END)
        ON CONFLICT (queue, tube, key) DO UPDATE
            SET first = excluded.first, blocked = excluded.blocked;
    END IF;
END $$;

-- Put the right tasks in line after a change of how many tasks of a key may be taken at a time. Only
-- a key of which tasks are taken can have as many.
CREATE OR REPLACE FUNCTION pressure_mp.bound_keys(q pressure_mp.queues, most bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before bigint := (q.settings->>'per_key')::bigint;
BEGIN
    PERFORM pressure_mp.settle_group(q.slot, q.id, k.tube, k.key)
        FROM (SELECT v.tube, v.key, count(*) AS n FROM pressure_mp.tasks v
            WHERE v.queue = q.id AND v.state = 'T' AND v.key <> '' AND before <> most
            GROUP BY v.tube, v.key) k
        WHERE (before > 0 AND k.n >= before) <> (most > 0 AND k.n >= most);
END $$;

-- Note that a task was taken: if it was in line for a key, its group is the last in line from now on.
-- Returns the number of the last arrival.
CREATE OR REPLACE FUNCTION pressure_mp.begin_group(a_slot bigint, t pressure_mp.tasks,
    arrival bigint, moment bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF t.key = '' THEN
        RETURN arrival;
    END IF;
    arrival := greatest(arrival + 1, moment * 1000);
    UPDATE pressure_mp.groups v SET last = arrival, first = NULL
        WHERE v.queue = t.queue AND v.tube = t.tube AND v.key = t.key;
    PERFORM pressure_mp.settle_group(a_slot, t.queue, t.tube, t.key);
    RETURN arrival;
END $$;

-- Note that a transition of a task is due then, perhaps before all others.
CREATE OR REPLACE FUNCTION pressure_mp.note_due(a_slot bigint, a_queue bigint, a_due bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.queues v SET version = v.version + 1, due_from = a_due - 1
        WHERE v.ctid = (SELECT u.ctid FROM pressure_mp.queues u
                WHERE u.slot = a_slot AND u.id = a_queue ORDER BY u.version DESC LIMIT 1)
            AND v.due_from >= a_due;
END $$;

-- Bring a task into another state, which ends by itself at "ends", and into a tube, if one is
-- given.
CREATE OR REPLACE FUNCTION pressure_mp.turn(a_slot bigint, moment bigint, t pressure_mp.tasks,
    after text,
    ends bigint, a_tube bytea) RETURNS pressure_mp.tasks LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before text := t.state;
    old_tube bytea := t.tube;
BEGIN
    IF a_tube IS NOT NULL AND a_tube <> t.tube THEN
        PERFORM pressure_mp.count_shift(t.queue, t.state, after, t.tube, a_tube);
    ELSE
        PERFORM pressure_mp.count_way(t.queue, t.state, after, t.tube);
    END IF;
    UPDATE pressure_mp.tasks v
        SET state = after, since = moment, due = ends, tube = coalesce(a_tube, t.tube),
            owner = CASE t.state WHEN 'T' THEN '' ELSE t.owner END,
            call = CASE t.state WHEN 'T' THEN 0 ELSE t.call END,
            priority = t.priority, deliveries = t.deliveries, report = t.report, data = t.data,
            line = CASE t.key WHEN '' THEN t.line ELSE 0 END
        WHERE v.queue = t.queue AND v.id = t.id RETURNING * INTO t;
    IF ends > 0 THEN
        PERFORM pressure_mp.note_due(a_slot, t.queue, ends);
    END IF;
    IF t.key <> '' THEN
        IF old_tube <> t.tube THEN
            PERFORM pressure_mp.settle_group(a_slot, t.queue, old_tube, t.key);
        END IF;
        PERFORM pressure_mp.settle_group(a_slot, t.queue, t.tube, t.key);
    END IF;
    IF t.unique_key <> '' AND before IN ('B', 'Z', 'D') AND after IN ('R', 'W') THEN
        PERFORM pressure_mp.hold_again(t, moment);
    END IF;
    IF after = 'B' THEN
        PERFORM pressure_mp.conclude(a_slot, moment, t, 'buried', before);
    END IF;
    RETURN t;
END $$;

-- Remove a task.
CREATE OR REPLACE FUNCTION pressure_mp.vanish(a_slot bigint, moment bigint, t pressure_mp.tasks,
    outcome text) RETURNS pressure_mp.tasks LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before text := t.state;
BEGIN
    PERFORM pressure_mp.count_way(t.queue, t.state, 'X', t.tube);
    DELETE FROM pressure_mp.tasks v WHERE v.queue = t.queue AND v.id = t.id;
    IF t.key <> '' THEN
        PERFORM pressure_mp.settle_group(a_slot, t.queue, t.tube, t.key);
    END IF;
    t.state := 'X';
    t.since := moment;
    t.due := 0;
    PERFORM pressure_mp.conclude(a_slot, moment, t, outcome, before);
    RETURN t;
END $$;

-- Make a task ready, or let it wait for a delay.
CREATE OR REPLACE FUNCTION pressure_mp.revive(q pressure_mp.queues, a_slot bigint, moment bigint,
    t pressure_mp.tasks, delay bigint, a_ttl bigint, a_tube bytea) RETURNS pressure_mp.tasks
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF delay > 0 THEN
        RETURN pressure_mp.turn(a_slot, moment, t, 'W', moment + delay, a_tube);
    END IF;
    t := pressure_mp.turn(a_slot, moment, t, 'R', pressure_mp.lifetime(q, moment, a_ttl), a_tube);
    IF t.key = '' THEN
        PERFORM pressure_mp.note_ready(t.queue, t.tube, t.priority, t.line);
    END IF;
    RETURN t;
END $$;

-- Give a taken task back, or bury it if it was delivered too often.
CREATE OR REPLACE FUNCTION pressure_mp.give_back(q pressure_mp.queues, a_slot bigint, moment bigint,
    t pressure_mp.tasks, a_report bytea, delay bigint, a_ttl bigint, a_tube bytea)
RETURNS pressure_mp.tasks LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    most bigint := (q.settings->>'max_deliveries')::bigint;
BEGIN
    IF a_report <> '' THEN
        t.report := a_report;
    END IF;
    IF most > 0 AND most <= t.deliveries THEN
        RETURN pressure_mp.turn(a_slot, moment, t, 'B', 0, a_tube);
    END IF;
    RETURN pressure_mp.revive(q, a_slot, moment, t, delay, a_ttl, a_tube);
END $$;

-- Return the time at which a task is removed that becomes a zombie now; 0 when it stays.
CREATE OR REPLACE FUNCTION pressure_mp.zombie_until(moment bigint, zombie bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE zombie WHEN -1 THEN 0 ELSE moment + zombie END
$$;

-- Note that a taken task was processed.
CREATE OR REPLACE FUNCTION pressure_mp.process(q pressure_mp.queues, a_slot bigint, moment bigint,
    t pressure_mp.tasks, delay bigint, a_tube bytea) RETURNS pressure_mp.tasks
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    zombie bigint := coalesce(delay, (q.settings->>'zombie')::bigint);
BEGIN
    IF (q.settings->>'keep')::boolean THEN
        t := pressure_mp.turn(a_slot, moment, t, 'D', 0, a_tube);
    ELSIF zombie <> 0 THEN
        t := pressure_mp.turn(a_slot, moment, t, 'Z',
            pressure_mp.zombie_until(moment, zombie), a_tube);
    ELSE
        RETURN pressure_mp.vanish(a_slot, moment, t, 'processed');
    END IF;
    PERFORM pressure_mp.conclude(a_slot, moment, t, 'processed', 'T');
    RETURN t;
END $$;

-- Make the transition of a task whose time in its state is over.
CREATE OR REPLACE FUNCTION pressure_mp.lapse(q pressure_mp.queues, a_slot bigint, moment bigint,
    t pressure_mp.tasks) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    CASE t.state
    WHEN 'W' THEN
        PERFORM pressure_mp.revive(q, a_slot, moment, t, 0, NULL, NULL);
    WHEN 'T' THEN
        PERFORM pressure_mp.give_back(q, a_slot, moment, t,
            'it was not processed within its ttr', 0, NULL, NULL);
    WHEN 'Z' THEN
        PERFORM pressure_mp.vanish(a_slot, moment, t, 'processed');
    ELSE
        PERFORM pressure_mp.vanish(a_slot, moment, t, 'dropped');
    END CASE;
END $$;

-- Whether anything is due: a transition of a task after "due_past", the end of a result after "past",
-- of an inbox or of a content.
CREATE OR REPLACE FUNCTION pressure_mp.is_any_due(a_queue bigint, past bigint, due_past bigint,
    moment bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pressure_mp.tasks v
            WHERE v.queue = a_queue AND v.due > 0 AND v.due > due_past AND v.due <= moment)
        OR EXISTS (SELECT FROM pressure_mp.results v
            WHERE v.queue = a_queue AND v.until > past AND v.until <= moment)
        OR EXISTS (SELECT FROM pressure_mp.inboxes v WHERE v.queue = a_queue AND v.until <= moment)
        OR EXISTS (SELECT FROM pressure_mp.contents v WHERE v.queue = a_queue AND v.until <= moment);
END $$;

-- Make transitions that are due; so many in one call. Returns whether the queue may have changed.
-- Once in a second, and after some fifty calls, it notes that all are made: earlier entries are not
-- read again, also while they cannot be cleaned up because a transaction has an old snapshot.
CREATE OR REPLACE FUNCTION pressure_mp.sweep_tasks(q pressure_mp.queues, a_slot bigint,
    moment bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    n bigint := 0;
    was_set_back boolean := moment < q.swept;  -- the server's clock
    past bigint := CASE WHEN was_set_back THEN 0 ELSE q.swept END;
    due_past bigint := greatest(past, q.due_from);
    is_noted boolean := was_set_back OR moment - q.swept >= 1000 OR random() < 0.02;
BEGIN
    IF NOT (is_noted OR q.limited) AND NOT pressure_mp.is_any_due(q.id, past, due_past, moment) THEN
        RETURN false;
    END IF;
    FOR t IN
        SELECT * FROM pressure_mp.tasks v
            WHERE v.queue = q.id AND v.due > 0 AND v.due > due_past AND v.due <= moment
            ORDER BY v.due, v.id LIMIT 100
    LOOP
        PERFORM pressure_mp.lapse(q, a_slot, moment, t);
        n := n + 1;
    END LOOP;
    IF q.limited THEN
        n := n + pressure_mp.open_keys(q, moment);
    END IF;
    is_noted := pressure_mp.sweep_results(q.id, past, moment) AND is_noted;
    IF n < 100 AND is_noted THEN
        UPDATE pressure_mp.queues v SET version = v.version + 1, swept = moment
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
        RETURN true;
    END IF;
    RETURN n > 0;
END $$;

-- Make tasks for a reply: the ids, tubes, keys, unique keys, reports and data of all, and the numbers beside these.
CREATE OR REPLACE FUNCTION pressure_mp.tell_tasks(a_status text, tasks pressure_mp.tasks[],
    whole boolean,
    more jsonb DEFAULT '{}') RETURNS pressure_mp.reply LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    t pressure_mp.tasks;
    told jsonb;
    parts bytea[];
BEGIN
    IF cardinality(tasks) = 1 THEN
        t := tasks[1];
        told := jsonb_build_array(jsonb_build_array(t.state, t.priority::text, t.created, t.since,
            t.due, t.deliveries, t.call, t.owner, t.result_ttl));
        parts := ARRAY[t.id, t.tube, t.key, t.unique_key, t.report, CASE WHEN whole THEN t.data ELSE '' END];
    ELSE
        SELECT coalesce(jsonb_agg(jsonb_build_array(e.state, e.priority::text, e.created, e.since,
                e.due, e.deliveries, e.call, e.owner, e.result_ttl)), '[]'),
            array_agg(e.id) || array_agg(e.tube) || array_agg(e.key) || array_agg(e.unique_key)
                || array_agg(e.report) || array_agg(CASE WHEN whole THEN e.data ELSE '' END)
            INTO told, parts
            FROM (SELECT * FROM unnest(tasks) WITH ORDINALITY u ORDER BY u.ordinality) e;
    END IF;
    RETURN pressure_mp.told(a_status, more || jsonb_build_object('tasks', told),
        coalesce(parts, '{}'), NULL);
END $$;

-- Whether there may be ready tasks that no take gets now: with a key, or paused, or not admitted; in one tube unless
-- that is ''.
CREATE OR REPLACE FUNCTION pressure_mp.has_withheld(q pressure_mp.queues, a_tube bytea)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pressure_mp.tasks t WHERE t.queue = q.id AND t.key <> ''
            AND t.state = 'R' AND (a_tube = '' OR t.tube = a_tube))
        OR ((q.paused <> '{}' OR q.limited) AND EXISTS (SELECT FROM pressure_mp.tasks t
            WHERE t.queue = q.id AND t.state = 'R' AND t.line > 0 AND (a_tube = '' OR t.tube = a_tube)));
END $$;

-- Wake the first in line, if no session will call again when a limit admits the next task.
CREATE OR REPLACE FUNCTION pressure_mp.wake_watcher(q pressure_mp.queues, moment bigint, own bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    due_at bigint := pressure_mp.admitted_after(q, moment, NULL);
BEGIN
    IF due_at IS NOT NULL AND NOT EXISTS (SELECT FROM pressure_mp.waiting v
        WHERE v.slot = q.slot AND v.line = 't' AND v.place > q.passed
            AND v.due BETWEEN moment AND due_at)
    THEN
        PERFORM pressure_mp.wake_first(q.slot, 't', own);
    END IF;
END $$;

-- Wake the first in line for each ready task; after a shutdown also the sessions without a ready
-- task, and all when the queue is gone.
CREATE OR REPLACE FUNCTION pressure_mp.wake_takers(a_slot bigint, a_prefix text, a_name text,
    own bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
    w pressure_mp.waiting;
    left_over bigint;
    in_tube bigint;
    given jsonb := '{}';
    moment bigint;
BEGIN
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, 'tasks', a_name);
    IF NOT FOUND OR (q.closed AND NOT pressure_mp.has_withheld(q, '')) THEN
        PERFORM pressure_mp.wake_all(a_slot, 't', own);
        RETURN;
    END IF;
    IF q.limited THEN
        moment := pressure_mp.clock();
        PERFORM pressure_mp.wake_watcher(q, moment, own);
        q.paused := q.paused || pressure_mp.used_up(pressure_mp.look_at_limits(q, moment));
    END IF;
    left_over := pressure_mp.count_some_ready(q, '', (SELECT count(*) FROM pressure_mp.waiting v
        WHERE v.slot = a_slot AND v.line = 't' AND v.place > q.passed));
    FOR w IN
        SELECT * FROM pressure_mp.waiting v
            WHERE v.slot = a_slot AND v.line = 't' AND v.place > q.passed ORDER BY v.place
    LOOP
        EXIT WHEN left_over <= 0 AND NOT q.closed;
        IF NOT pressure_mp.is_there(w.listener, w.seen, w.lease) THEN
            DELETE FROM pressure_mp.waiting v
                WHERE v.slot = a_slot AND v.line = 't' AND v.place = w.place;
            CONTINUE;
        END IF;
        IF q.closed AND NOT pressure_mp.has_withheld(q, w.tube) THEN
            PERFORM pressure_mp.wake(w, own);
            CONTINUE;
        END IF;
        CONTINUE WHEN left_over <= 0;
        IF w.tube <> '' THEN
            in_tube := coalesce((given->>encode(w.tube, 'hex'))::bigint, 0);
            CONTINUE WHEN pressure_mp.count_some_ready(q, w.tube, in_tube + 1) <= in_tube;
            given := given || jsonb_build_object(encode(w.tube, 'hex'), in_tube + 1);
        END IF;
        left_over := left_over - 1;
        IF NOT w.woken THEN
            PERFORM pressure_mp.wake(w, own);
        END IF;
    END LOOP;
END $$;
