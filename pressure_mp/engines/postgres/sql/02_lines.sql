-- The lines of waiting sessions, and their wake-ups.

CREATE OR REPLACE FUNCTION pressure_mp.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT trunc(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

CREATE OR REPLACE FUNCTION pressure_mp.slot(a_prefix text, a_kind text, a_name text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended('pressure_mp ' || a_kind || ' ' || a_name, hashtext(a_prefix))
$$;

-- Find a queue. It is a part of each statement that calls it, and costs no call.
CREATE OR REPLACE FUNCTION pressure_mp.find_queue(a_slot bigint, a_prefix text, a_kind text,
    a_name text) RETURNS SETOF pressure_mp.queues LANGUAGE sql STABLE AS $$
    SELECT v.* FROM pressure_mp.queues v
        WHERE v.slot = a_slot AND v.prefix = a_prefix AND v.kind = a_kind AND v.name = a_name
        ORDER BY v.version DESC LIMIT 1
$$;

-- Return how many items are not done; below 0 after a task_done too many.
CREATE OR REPLACE FUNCTION pressure_mp.unfinished(q pressure_mp.queues) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(q.produced_messages, q.consumed_messages) - q.done
$$;

-- Return names that are kept as bytes, as JSON.
CREATE OR REPLACE FUNCTION pressure_mp.texts(names bytea[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(convert_from(u, 'UTF8')), '[]') FROM unnest(names) u
$$;

CREATE OR REPLACE FUNCTION pressure_mp.said(a_status text, a_info jsonb DEFAULT NULL)
RETURNS pressure_mp.reply LANGUAGE sql IMMUTABLE AS $$
    SELECT ROW(a_status, a_info, NULL, NULL)::pressure_mp.reply
$$;

CREATE OR REPLACE FUNCTION pressure_mp.told(a_status text, a_info jsonb, a_items bytea[],
    a_undo pressure_mp.items[]) RETURNS pressure_mp.reply LANGUAGE sql IMMUTABLE AS $$
    SELECT ROW(a_status, a_info, a_items, a_undo)::pressure_mp.reply
$$;

-- Whether a waiting session is still there. Its process's listener holds a lock while it lives.
CREATE OR REPLACE FUNCTION pressure_mp.is_there(a_listener bigint, a_seen bigint, a_lease bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_seen + greatest(a_lease, 3000) < pressure_mp.clock() THEN
        RETURN false;
    END IF;
    RETURN a_listener IS NULL OR NOT pg_try_advisory_xact_lock_shared(a_listener);
END $$;

-- Return the place in a queue's lines behind which all are. Places are numbered in the order in
-- which they are given.
CREATE OR REPLACE FUNCTION pressure_mp.passed(a_slot bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT v.passed FROM pressure_mp.queues v WHERE v.slot = a_slot
        ORDER BY v.version DESC LIMIT 1), 0);
END $$;

-- Note up to which place all are gone, if a session was given that place.
CREATE OR REPLACE FUNCTION pressure_mp.pass(a_slot bigint, a_place bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before bigint := pressure_mp.passed(a_slot);
BEGIN
    IF a_place > before + 32 THEN  -- not for each place
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, passed = (SELECT min(w.place) - 1
                FROM pressure_mp.waiting w WHERE w.slot = a_slot
                    AND w.line IN ('p', 'c', 'j', 't') AND w.place > before)
            WHERE v.ctid = (SELECT u.ctid FROM pressure_mp.queues u WHERE u.slot = a_slot
                ORDER BY u.version DESC LIMIT 1);
    END IF;
END $$;

-- Return the first session of a line. Sessions before it that are gone lose their places.
CREATE OR REPLACE FUNCTION pressure_mp.first_place(a_slot bigint, a_line text)
RETURNS pressure_mp.waiting
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    one pressure_mp.waiting;
    before bigint := pressure_mp.passed(a_slot);
BEGIN
    LOOP
        SELECT * INTO one FROM pressure_mp.waiting w
            WHERE w.slot = a_slot AND w.line = a_line AND w.place > before
            ORDER BY w.place LIMIT 1;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        IF pressure_mp.is_there(one.listener, one.seen, one.lease) THEN
            RETURN one;
        END IF;
        DELETE FROM pressure_mp.waiting w
            WHERE w.slot = a_slot AND w.line = a_line AND w.place = one.place;
    END LOOP;
END $$;

-- Whether no session is in front of the caller, which need not have a place yet.
CREATE OR REPLACE FUNCTION pressure_mp.is_next(c pressure_mp.caller, a_line text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    one pressure_mp.waiting;
BEGIN
    PERFORM FROM pressure_mp.waiting w WHERE w.slot = c.slot AND w.line = a_line
        AND w.place > pressure_mp.passed(c.slot) LIMIT 1;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    one := pressure_mp.first_place(c.slot, a_line);
    RETURN one.session IS NULL OR one.session = c.session;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.has_place(c pressure_mp.caller, a_line text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pressure_mp.waiting w
        WHERE w.slot = c.slot AND w.line = a_line AND w.place > pressure_mp.passed(c.slot)
            AND w.session = c.session);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.count_others(c pressure_mp.caller, a_line text)
RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT count(*) FROM pressure_mp.waiting w
        WHERE w.slot = c.slot AND w.line = a_line AND w.place > pressure_mp.passed(c.slot)
            AND w.session <> c.session);
END $$;

-- Return whether a call that may wait goes behind the sessions in line. These are served in the order in
-- which they came. A session without a place goes first when its call leaves an item, or space, for each
-- of them.
CREATE OR REPLACE FUNCTION pressure_mp.yields(c pressure_mp.caller, a_line text,
    a_left double precision) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN NOT pressure_mp.is_next(c, a_line) AND (pressure_mp.has_place(c, a_line)
        OR a_left < pressure_mp.count_others(c, a_line));
END $$;

-- Keep the caller's place, or give it the last one.
CREATE OR REPLACE FUNCTION pressure_mp.stand(c pressure_mp.caller, a_line text,
    a_until_ended boolean,
    a_owner text, a_tube bytea) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment bigint := pressure_mp.clock();
    a_place bigint;
BEGIN
    UPDATE pressure_mp.waiting w
        SET listener = c.listener, client = c.client, seen = moment, lease = c.lease,
            woken = false, until_ended = a_until_ended, owner = a_owner, tube = a_tube
        WHERE w.slot = c.slot AND w.line = a_line AND w.place > pressure_mp.passed(c.slot)
            AND w.session = c.session;
    IF NOT FOUND THEN
        INSERT INTO pressure_mp.waiting
            (slot, line, session, listener, client, since, seen, lease, until_ended, owner, tube)
            VALUES (c.slot, a_line, c.session, c.listener, c.client, moment, moment, c.lease,
                a_until_ended, a_owner, a_tube)
            RETURNING place INTO a_place;
        PERFORM pressure_mp.pass(c.slot, a_place);
    END IF;
    IF a_line IN ('p', 'c') THEN
        PERFORM pressure_mp.note_line(c.slot, true);
    END IF;
END $$;

-- Note whether a client may be in line for space or for an item.
CREATE OR REPLACE FUNCTION pressure_mp.note_line(a_slot bigint, is_there boolean) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.queues v SET version = v.version + 1, has_line = is_there
        WHERE v.ctid = (SELECT u.ctid FROM pressure_mp.queues u WHERE u.slot = a_slot
                ORDER BY u.version DESC LIMIT 1)
            AND v.has_line <> is_there;
END $$;

-- Wake a waiting session by a notification; but not in the process of the listener "own", which is
-- told by the reply.
CREATE OR REPLACE FUNCTION pressure_mp.tell(a_listener bigint, a_session text, own bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_listener IS NOT NULL AND a_listener IS DISTINCT FROM own THEN
        PERFORM pg_notify('pressure_mp_' || a_listener, a_session);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.wake(w pressure_mp.waiting, own bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.waiting v SET woken = true
        WHERE v.slot = w.slot AND v.line = w.line AND v.place = w.place;
    PERFORM pressure_mp.tell(w.listener, w.session, own);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.wake_first(a_slot bigint, a_line text, own bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    one pressure_mp.waiting := pressure_mp.first_place(a_slot, a_line);
BEGIN
    IF one.session IS NOT NULL AND NOT one.woken THEN
        PERFORM pressure_mp.wake(one, own);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.wake_all(a_slot bigint, a_line text, own bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pressure_mp.wake(w, own) FROM pressure_mp.waiting w
        WHERE w.slot = a_slot AND w.line = a_line AND w.place > pressure_mp.passed(a_slot)
            AND NOT w.woken;
END $$;

-- Return the sessions of the caller's process that were woken, and have not called since.
CREATE OR REPLACE FUNCTION pressure_mp.woken_of(a_slot bigint, own bigint) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT array_agg(convert_to(w.session, 'UTF8')) FROM pressure_mp.waiting w
        WHERE w.slot = a_slot AND w.line IN ('p', 'c', 'j', 't')
            AND w.place > pressure_mp.passed(a_slot) AND w.woken AND w.listener = own);
END $$;

-- Wake the sessions at a queue of items that would be served, or told that their wait is in vain.
CREATE OR REPLACE FUNCTION pressure_mp.wake_items(a_slot bigint, a_prefix text, a_name text,
    own bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
BEGIN
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, 'items', a_name);
    IF NOT FOUND THEN
        PERFORM pressure_mp.wake_all(a_slot, line, own) FROM unnest(ARRAY['p', 'c', 'j']) line;
        RETURN;
    END IF;
    IF q.closed THEN
        PERFORM pressure_mp.wake_all(a_slot, 'p', own);
    ELSIF q.bound <= 0 OR q.length < q.bound THEN
        PERFORM pressure_mp.wake_first(a_slot, 'p', own);
    END IF;
    IF q.length > 0 THEN
        PERFORM pressure_mp.wake_first(a_slot, 'c', own);
    ELSIF q.closed THEN
        PERFORM pressure_mp.wake_all(a_slot, 'c', own);
    ELSIF q.had_producers THEN
        PERFORM pressure_mp.wake(w, own) FROM pressure_mp.waiting w
            WHERE w.slot = a_slot AND w.line = 'c' AND w.place > q.passed
                AND NOT w.woken AND w.until_ended
                AND pressure_mp.has_ended(q, w.owner);
    END IF;
    IF pressure_mp.unfinished(q) <= 0 THEN
        PERFORM pressure_mp.wake_all(a_slot, 'j', own);
    END IF;
END $$;

-- Whether every producer has ended and, for the owner of deliveries, no item of others may be
-- requeued.
CREATE OR REPLACE FUNCTION pressure_mp.has_ended(q pressure_mp.queues, a_owner text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT q.had_producers
        OR EXISTS (SELECT FROM pressure_mp.leases l WHERE l.queue = q.id AND l.role = 'p')
    THEN
        RETURN false;
    END IF;
    RETURN a_owner IS NULL OR NOT (
        EXISTS (SELECT FROM pressure_mp.deliveries d
            WHERE d.queue = q.id AND d.owner <> a_owner AND NOT d.passed)
        OR EXISTS (SELECT FROM pressure_mp.readers r
            WHERE r.queue = q.id AND pressure_mp.owner_of(r.reader) <> a_owner
                AND cardinality(r.entries) > 0)
    );
END $$;

-- Return the process that owns the items that a reader prefetched.
CREATE OR REPLACE FUNCTION pressure_mp.owner_of(a_reader text)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(a_reader, '#[^#]*$', '')
$$;
