-- Results of tasks, and the inboxes whose clients are told of tasks.

-- Remove the result of a task.
CREATE OR REPLACE FUNCTION pressure_mp.forget_result(a_queue bigint, a_id bytea) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_token text;
BEGIN
    DELETE FROM pressure_mp.results v WHERE v.queue = a_queue AND v.id = a_id
        RETURNING v.token INTO a_token;
    IF a_token <> '' THEN
        PERFORM pressure_mp.end_content(a_queue, a_token);
    END IF;
END $$;

-- Add a notice of each of the tasks that names this inbox, and wake the session that waits for notices.
-- Returns the number of the last notice before these; NULL if there is no such inbox, or if it gets no
-- notices of such events.
CREATE OR REPLACE FUNCTION pressure_mp.tell_inbox(a_name text, tasks pressure_mp.tasks[],
    a_event text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    i pressure_mp.inboxes;
    n bigint;
BEGIN
    SELECT * INTO i FROM pressure_mp.inboxes v
        WHERE v.queue = tasks[1].queue AND v.name = a_name;
    IF NOT FOUND OR (a_event IN ('taken', 'progress') AND NOT i.takes) THEN
        RETURN NULL;
    END IF;
    INSERT INTO pressure_mp.notices
        SELECT t.queue, a_name, i.number + row_number() OVER (ORDER BY t.ordinality), t.id, a_event,
            t.deliveries, t.report
        FROM unnest(tasks) WITH ORDINALITY t WHERE a_name = ANY (t.inboxes);
    GET DIAGNOSTICS n = ROW_COUNT;
    UPDATE pressure_mp.inboxes v SET number = i.number + n, session = NULL, listener = NULL
        WHERE v.queue = i.queue AND v.name = a_name;
    IF i.session IS NOT NULL THEN
        PERFORM pressure_mp.tell(i.listener, i.session, NULL);
    END IF;
    RETURN i.number;
END $$;

-- Tell all inboxes of the tasks.
CREATE OR REPLACE FUNCTION pressure_mp.tell_inboxes(tasks pressure_mp.tasks[], a_event text)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pressure_mp.tell_inbox(i.name, tasks, a_event)
        FROM (SELECT DISTINCT unnest(t.inboxes) AS name FROM unnest(tasks) t) i;
END $$;

-- Note that tasks of a queue have ended, or are buried: keep their results, which are their data here,
-- as far as these are to be kept, and tell their inboxes.
CREATE OR REPLACE FUNCTION pressure_mp.keep_results(moment bigint, ended pressure_mp.tasks[],
    a_outcome text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    an_inbox text;
    before bigint;
BEGIN
    PERFORM pressure_mp.forget_result(e.queue, e.id) FROM unnest(ended) e
        WHERE e.result_ttl <> 0 AND (SELECT v.outcome FROM pressure_mp.results v
            WHERE v.queue = e.queue AND v.id = e.id) IS NOT NULL;
    INSERT INTO pressure_mp.results
        SELECT e.queue, e.id, moment + e.result_ttl, a_outcome, '', 0, e.data, ''
            FROM unnest(ended) e WHERE e.result_ttl > 0;
    FOR an_inbox IN SELECT DISTINCT unnest(e.inboxes) FROM unnest(ended) e LOOP
        before := pressure_mp.tell_inbox(an_inbox, ended, a_outcome);
        INSERT INTO pressure_mp.results
            SELECT e.queue, e.id, NULL, a_outcome, an_inbox, before + e.place, e.data, ''
            FROM (SELECT u.*, row_number() OVER (ORDER BY u.ordinality) AS place
                FROM unnest(ended) WITH ORDINALITY u WHERE an_inbox = ANY (u.inboxes)) e
            WHERE e.result_ttl < 0 AND e.inboxes[1] = an_inbox AND before IS NOT NULL;
    END LOOP;
END $$;

-- Whether the content of a result exists, if it needs one.
CREATE OR REPLACE FUNCTION pressure_mp.has_content(a_queue bigint, a_token text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN a_token IS NULL OR EXISTS (SELECT FROM pressure_mp.contents k
        WHERE k.queue = a_queue AND k.token = a_token
            AND (k.until IS NULL OR k.until > pressure_mp.clock()));
END $$;

-- Set the result of a task, if it has ended just now and its result is to be kept.
CREATE OR REPLACE FUNCTION pressure_mp.say_result(t pressure_mp.tasks, a_data bytea, a_token text)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF t.state IN ('X', 'Z', 'D', 'B') AND t.result_ttl <> 0 THEN
        UPDATE pressure_mp.results v SET data = a_data, token = coalesce(a_token, '')
            WHERE v.queue = t.queue AND v.id = t.id;
        IF FOUND THEN
            UPDATE pressure_mp.contents k SET until = NULL
                WHERE k.queue = t.queue AND k.token = a_token;
            RETURN;
        END IF;
    END IF;
    IF a_token IS NOT NULL THEN
        PERFORM pressure_mp.end_content(t.queue, a_token);
    END IF;
END $$;

-- Remove an inbox, and the results that were kept for it.
CREATE OR REPLACE FUNCTION pressure_mp.close_inbox(a_queue bigint, a_name text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pressure_mp.inboxes v WHERE v.queue = a_queue AND v.name = a_name;
    DELETE FROM pressure_mp.notices v WHERE v.queue = a_queue AND v.inbox = a_name;
    PERFORM pressure_mp.forget_result(a_queue, v.id) FROM pressure_mp.results v
        WHERE v.queue = a_queue AND v.inbox = a_name AND v.inbox <> '';
END $$;

-- Remove results and inboxes whose time is over, and contents without a result. Returns whether
-- these were all results whose time ended later than "past".
CREATE OR REPLACE FUNCTION pressure_mp.sweep_results(a_queue bigint, past bigint, moment bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    an_id bytea;
    a_name text;
    n bigint := 0;
BEGIN
    FOR an_id IN
        SELECT v.id FROM pressure_mp.results v
            WHERE v.queue = a_queue AND v.until > past AND v.until <= moment
            ORDER BY v.until LIMIT 100
    LOOP
        PERFORM pressure_mp.forget_result(a_queue, an_id);
        n := n + 1;
    END LOOP;
    FOR a_name IN
        SELECT v.name FROM pressure_mp.inboxes v WHERE v.queue = a_queue AND v.until <= moment
            LIMIT 10
    LOOP
        PERFORM pressure_mp.close_inbox(a_queue, a_name);
    END LOOP;
    DELETE FROM pressure_mp.holders v
        WHERE v.queue = a_queue AND NOT v.held AND v.until <= moment;
    PERFORM FROM pressure_mp.contents k WHERE k.queue = a_queue AND k.until <= moment LIMIT 1;
    IF FOUND THEN
        PERFORM pressure_mp.sweep(a_queue);
    END IF;
    RETURN n < 100;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.open_inbox(q pressure_mp.queues, moment bigint, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_lease bigint := (args->>'lease')::bigint;
    a_takes boolean := args ? 'takes';
BEGIN
    -- An inbox that was removed does not count from 1 again: its client may name notices that it
    -- saw before.
    INSERT INTO pressure_mp.inboxes
        VALUES (q.id, args->>'inbox', a_lease, moment + a_lease, moment * 1000, a_takes)
    ON CONFLICT (queue, name)
        DO UPDATE SET lease = excluded.lease, until = excluded.until, takes = excluded.takes;
    RETURN pressure_mp.said('done');
END $$;

-- Return the inbox, and renew its lease; NULL if it is gone.
CREATE OR REPLACE FUNCTION pressure_mp.renew_inbox(a_queue bigint, a_name text, moment bigint)
RETURNS pressure_mp.inboxes LANGUAGE sql VOLATILE AS $$
    UPDATE pressure_mp.inboxes v SET until = moment + v.lease, session = NULL, listener = NULL
        WHERE v.queue = a_queue AND v.name = a_name RETURNING v.*
$$;

-- "parts" are the ids of tasks of which an inbox is to be told.
CREATE OR REPLACE FUNCTION pressure_mp.watch_tasks(q pressure_mp.queues, moment bigint, args jsonb,
    parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    a_name text := args->>'inbox';
    i pressure_mp.inboxes := pressure_mp.renew_inbox(q.id, a_name, moment);
    an_event text;
BEGIN
    IF i.name IS NULL THEN
        RETURN pressure_mp.said('lost');
    END IF;
    FOR at IN 1 .. cardinality(parts) LOOP
        t := pressure_mp.get_task(q.id, parts[at]);
        an_event := CASE t.state WHEN 'T' THEN 'taken' WHEN 'B' THEN 'buried'
            WHEN 'Z' THEN 'processed' WHEN 'D' THEN 'processed' END;
        IF t.id IS NULL THEN
            an_event := coalesce((SELECT v.outcome FROM pressure_mp.results v
                WHERE v.queue = q.id AND v.id = parts[at]), 'absent');
            t.queue := q.id;
            t.id := parts[at];
            t.deliveries := 0;
            t.report := '';
        ELSIF a_name <> ALL (t.inboxes) THEN
            UPDATE pressure_mp.tasks v SET inboxes = v.inboxes || a_name
                WHERE v.queue = q.id AND v.id = t.id;
        END IF;
        IF an_event IS NOT NULL THEN
            t.inboxes := ARRAY[a_name];
            PERFORM pressure_mp.tell_inbox(a_name, ARRAY[t], an_event);
        END IF;
    END LOOP;
    RETURN pressure_mp.said('done');
END $$;

-- Return the notices of an inbox that its client has not seen. The reply has id, report and result
-- of each.
CREATE OR REPLACE FUNCTION pressure_mp.take_notices(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, args jsonb) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_name text := args->>'inbox';
    a_seen bigint := (args->>'seen')::bigint;
    i pressure_mp.inboxes := pressure_mp.renew_inbox(q.id, a_name, moment);
    about jsonb;
    parts bytea[];
BEGIN
    IF i.name IS NULL THEN
        RETURN pressure_mp.said('lost');
    END IF;
    DELETE FROM pressure_mp.notices v
        WHERE v.queue = q.id AND v.inbox = a_name AND v.number <= a_seen;
    IF FOUND THEN
        PERFORM pressure_mp.forget_result(q.id, v.id) FROM pressure_mp.results v
            WHERE v.queue = q.id AND v.inbox = a_name AND v.inbox <> '' AND v.number <= a_seen;
    END IF;
    -- Results up to so many bytes, but at least one.
    WITH next AS (
        SELECT v.* FROM pressure_mp.notices v
            WHERE v.queue = q.id AND v.inbox = a_name AND v.number > a_seen
            ORDER BY v.number LIMIT (args->>'limit')::bigint
    ), sized AS (
        SELECT n.*, k.data, k.token,
            sum(coalesce(octet_length(k.data), 0)) OVER (ORDER BY n.number) AS size,
            row_number() OVER (ORDER BY n.number) AS place
        FROM next n LEFT JOIN pressure_mp.results k
            ON k.queue = q.id AND k.id = n.task AND n.event NOT IN ('taken', 'progress', 'absent')
    ), chosen AS (
        SELECT * FROM sized z WHERE z.size <= 1000000 OR z.place = 1
    )
    SELECT (SELECT jsonb_agg(jsonb_build_array(c1.number, c1.event, c1.deliveries, c1.token)
                ORDER BY c1.number) FROM chosen c1),
        (SELECT array_agg(x.part ORDER BY c2.number, x.place) FROM chosen c2,
            LATERAL (VALUES (1, c2.task), (2, c2.report), (3, coalesce(c2.data, ''))) x (place, part))
        INTO about, parts;
    IF about IS NOT NULL THEN
        RETURN pressure_mp.told('notices', about, parts, NULL);
    END IF;
    IF args ? 'waits' THEN
        UPDATE pressure_mp.inboxes v SET session = c.session, listener = c.listener
            WHERE v.queue = q.id AND v.name = a_name;
    END IF;
    RETURN pressure_mp.said('no_notice');
END $$;
