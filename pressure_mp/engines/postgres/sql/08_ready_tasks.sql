-- The ready tasks, in line.

-- Note that a task is ready, in the line of all tubes and of its own: their beginnings may move to
-- it.
CREATE OR REPLACE FUNCTION pressure_mp.note_ready(a_queue bigint, a_tube bytea,
    a_priority double precision, a_line bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pressure_mp.begin_before(a_queue, '', a_priority, a_line);
    IF a_tube <> '' THEN
        PERFORM pressure_mp.begin_before(a_queue, a_tube, a_priority, a_line);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.begin_before(a_queue bigint, a_tube bytea,
    a_priority double precision, a_line bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b pressure_mp.beginnings := pressure_mp.beginning_of(a_queue, a_tube);
    at integer;
BEGIN
    IF b.queue IS NULL THEN
        INSERT INTO pressure_mp.beginnings
            VALUES (a_queue, a_tube, 0, true, ARRAY[a_priority], ARRAY[a_line - 1]);
        RETURN;
    ELSIF NOT b.by_priority THEN
        IF (a_priority, a_line) > (b.priorities[1], b.lines[1]) THEN
            RETURN;
        END IF;
        b.priorities := ARRAY[a_priority];
        b.lines := ARRAY[a_line - 1];
    ELSE
        at := array_position(b.priorities, a_priority);
        IF at IS NOT NULL THEN
            IF a_line > b.lines[at] THEN
                RETURN;
            END IF;
            b.lines[at] := a_line - 1;
        ELSE
            b.priorities := b.priorities || a_priority;
            b.lines := b.lines || (a_line - 1);
            IF cardinality(b.priorities) > 16 THEN
                SELECT false, ARRAY[u.p], ARRAY[u.l] INTO b.by_priority, b.priorities, b.lines
                    FROM unnest(b.priorities, b.lines) u (p, l) ORDER BY u.p LIMIT 1;
            END IF;
        END IF;
    END IF;
    PERFORM pressure_mp.set_beginning(b);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.beginning_of(a_queue bigint, a_tube bytea)
RETURNS pressure_mp.beginnings LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b pressure_mp.beginnings;
BEGIN
    SELECT * INTO b FROM pressure_mp.beginnings v WHERE v.queue = a_queue AND v.tube = a_tube
        ORDER BY v.part DESC LIMIT 1;
    RETURN b;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.set_beginning(b pressure_mp.beginnings) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.beginnings v
        SET number = v.number + 1, by_priority = b.by_priority, priorities = b.priorities,
            lines = b.lines
        WHERE v.queue = b.queue AND v.tube = b.tube AND v.part >= b.part;
END $$;

-- Return the first ready task in a tube, in any tube where that is ''; NULL if there is none that is
-- not paused. The beginning of the line of all tubes moves past tasks of paused tubes.
CREATE OR REPLACE FUNCTION pressure_mp.first_ready(q pressure_mp.queues, a_tube bytea)
RETURNS pressure_mp.tasks LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_queue bigint := q.id;
    b pressure_mp.beginnings;
    t pressure_mp.tasks;
    a_priority double precision;
    a_line bigint;
    at integer;
    -- Whether to write the new beginning. Not each time, as that leaves a removed row too; but each
    -- take since then is one more entry of the index that is read in vain.
    written boolean;
BEGIN
    IF '' = ANY (q.paused) OR a_tube = ANY (q.paused) THEN
        RETURN NULL;
    END IF;
    b := pressure_mp.beginning_of(a_queue, a_tube);
    IF b.by_priority THEN
        FOR at, a_priority, a_line IN
            SELECT u.o, u.p, u.l FROM unnest(b.priorities, b.lines) WITH ORDINALITY u (p, l, o)
                ORDER BY u.p
        LOOP
            IF a_tube = '' THEN
                SELECT * INTO t FROM pressure_mp.tasks v
                    WHERE v.queue = a_queue AND v.state = 'R' AND v.line > 0
                        AND v.priority = a_priority AND v.line > a_line
                        AND v.tube <> ALL (q.paused)
                    ORDER BY v.line LIMIT 1;
            ELSE
                SELECT * INTO t FROM pressure_mp.tasks v
                    WHERE v.queue = a_queue AND v.state = 'R' AND v.line > 0 AND v.tube = a_tube
                        AND v.priority = a_priority AND v.line > a_line
                    ORDER BY v.line LIMIT 1;
            END IF;
            IF FOUND THEN
                b.lines[at] := t.line - 1;
                written := t.line - 1 - a_line >= 40;
                EXIT;
            END IF;
        END LOOP;
    ELSIF b.queue IS NOT NULL THEN
        IF a_tube = '' THEN
            SELECT * INTO t FROM pressure_mp.tasks v
                WHERE v.queue = a_queue AND v.state = 'R' AND v.line > 0
                    AND (v.priority, v.line) > (b.priorities[1], b.lines[1])
                    AND v.tube <> ALL (q.paused)
                ORDER BY v.priority, v.line LIMIT 1;
        ELSE
            SELECT * INTO t FROM pressure_mp.tasks v
                WHERE v.queue = a_queue AND v.state = 'R' AND v.line > 0 AND v.tube = a_tube
                    AND (v.priority, v.line) > (b.priorities[1], b.lines[1])
                ORDER BY v.priority, v.line LIMIT 1;
        END IF;
        b.priorities := ARRAY[t.priority];
        b.lines := ARRAY[t.line - 1];
        written := random() < 0.05;  -- lines of many priorities do not tell how many were taken
    END IF;
    IF t.id IS NULL THEN
        IF b.queue IS NOT NULL AND (NOT b.by_priority
            OR cardinality(b.priorities) > (q.paused = '{}')::integer)
        THEN
            b.by_priority := true;
            b.priorities := '{}';
            b.lines := '{}';
            PERFORM pressure_mp.set_beginning(b);
        END IF;
        RETURN NULL;
    END IF;
    IF written THEN
        PERFORM pressure_mp.set_beginning(b);
    END IF;
    RETURN t;
END $$;

-- Count the ready tasks that are not paused, up to so many.
CREATE OR REPLACE FUNCTION pressure_mp.count_some_ready(q pressure_mp.queues, a_tube bytea,
    most bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b pressure_mp.beginnings;
BEGIN
    IF '' = ANY (q.paused) OR a_tube = ANY (q.paused) THEN
        RETURN 0;
    END IF;
    b := pressure_mp.beginning_of(q.id, a_tube);
    IF NOT b.by_priority THEN
        RETURN (SELECT count(*) FROM (SELECT FROM pressure_mp.tasks v
            WHERE v.queue = q.id AND v.state = 'R' AND v.line > 0
                AND (a_tube = '' OR v.tube = a_tube) AND v.tube <> ALL (q.paused)
                AND (v.priority, v.line) > (b.priorities[1], b.lines[1])
            ORDER BY v.priority, v.line LIMIT most) few);
    END IF;
    RETURN (SELECT count(*) FROM (
        SELECT FROM unnest(b.priorities, b.lines) u (p, l), LATERAL (
            SELECT FROM pressure_mp.tasks v
                WHERE v.queue = q.id AND v.state = 'R' AND v.line > 0
                    AND (a_tube = '' OR v.tube = a_tube) AND v.tube <> ALL (q.paused)
                    AND v.priority = u.p AND v.line > u.l
                ORDER BY v.line LIMIT most) t
        LIMIT most) few);
END $$;

-- Have the line of all tubes begin before all tasks of a tube, as takes may have passed these by.
CREATE OR REPLACE FUNCTION pressure_mp.begin_again(a_queue bigint, a_tube bytea) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b pressure_mp.beginnings := pressure_mp.beginning_of(a_queue, a_tube);
BEGIN
    IF b.by_priority THEN
        PERFORM pressure_mp.begin_before(a_queue, '', u.p, u.l + 1)
            FROM unnest(b.priorities, b.lines) u (p, l);
    ELSIF b.queue IS NOT NULL THEN
        b := pressure_mp.beginning_of(a_queue, '');
        b.by_priority := false;
        b.priorities := '{-Infinity}';
        b.lines := '{0}';
        PERFORM pressure_mp.set_beginning(b);
    END IF;
END $$;

-- Pause the tube in "parts", the whole queue if that is ''; or resume it.
CREATE OR REPLACE FUNCTION pressure_mp.pause_tasks(q pressure_mp.queues, args jsonb, parts bytea[])
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    others bytea[] := array_remove(q.paused, parts[1]);
BEGIN
    IF args ? 'paused' THEN
        others := others || parts[1];
    ELSIF parts[1] <> '' THEN
        PERFORM pressure_mp.begin_again(q.id, parts[1]);
    END IF;
    UPDATE pressure_mp.queues v SET version = v.version + 1, paused = others
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    RETURN pressure_mp.said('done');
END $$;
