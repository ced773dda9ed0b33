-- Items in flight, which are requeued unless they are acknowledged, and the leases of their owners.

-- Requeue items at their places, which are in front; drop them if the queue was shut down with
-- immediate.
CREATE OR REPLACE FUNCTION pressure_mp.put_back(q pressure_mp.queues, entries pressure_mp.items[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint := coalesce(cardinality(entries), 0);
    a_ranks bytea[];
    a_positions bigint[];
    bytes bigint;
BEGIN
    IF n = 0 THEN
        RETURN;
    END IF;
    IF q.dropping THEN
        PERFORM pressure_mp.count_many_done(q, n);
        RETURN;
    END IF;
    INSERT INTO pressure_mp.items SELECT * FROM unnest(entries);
    SELECT array_agg(e.rank), array_agg(e.position), sum(e.size) INTO a_ranks, a_positions, bytes
        FROM unnest(entries) e;
    q := pressure_mp.note_places(q, a_ranks, a_positions);
    IF q.discipline = 'fair' THEN
        q.idle_keys := q.idle_keys - pressure_mp.enter_again(q.id, entries);
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, head_rank = q.head_rank, head_position = q.head_position,
            ranks = q.ranks, positions = q.positions, idle_keys = q.idle_keys,
            length = v.length + n, consumed_messages = v.consumed_messages - n,
            consumed_bytes = v.consumed_bytes - bytes
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
END $$;

-- Return items that were removed as they are in flight: with numbers behind the last one, for those
-- that have none, and as delivered so many times more.
CREATE OR REPLACE FUNCTION pressure_mp.number_items(entries pressure_mp.items[], last bigint,
    delivered integer) RETURNS pressure_mp.items[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY(SELECT ROW(e.queue, e.rank, e.position,
            CASE e.number WHEN 0 THEN last + count(*) FILTER (WHERE e.number = 0) OVER w
                ELSE e.number END,
            e.deliveries + delivered, e.size, e.token, e.tenant, e.item)::pressure_mp.items
        FROM unnest(entries) WITH ORDINALITY
            e (queue, rank, position, number, deliveries, size, token, tenant, item, o)
        WINDOW w AS (ORDER BY e.o ROWS UNBOUNDED PRECEDING) ORDER BY e.o);
END $$;

-- Renew a lease, unless it ends later, or hardly earlier.
CREATE OR REPLACE FUNCTION pressure_mp.renew_lease(a_queue bigint, a_role text, a_owner text,
    a_lease bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_until bigint := pressure_mp.clock() + a_lease;
BEGIN
    PERFORM FROM pressure_mp.leases l WHERE l.queue = a_queue AND l.role = a_role
        AND l.owner = a_owner AND l.until >= a_until - a_lease / 20;  -- not for each call
    IF NOT FOUND THEN
        PERFORM pressure_mp.set_lease(a_queue, a_role, a_owner, a_until);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.take_with_hold(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_owner text := args->>'owner';
    a_call bigint := (args->>'call')::bigint;
    a_reader text := args->>'reader';
    most bigint := (args->>'limit')::bigint;
    counts boolean := false;
    status text;
    taken pressure_mp.items[];
    got pressure_mp.reply;
BEGIN
    IF a_reader IS NOT NULL THEN
        most := least(most, pressure_mp.fair_share(q, c, a_reader));
        counts := NOT EXISTS (SELECT FROM pressure_mp.readers r WHERE r.queue = q.id
            AND r.reader = a_reader AND r.call > 0);
        IF counts THEN
            DELETE FROM pressure_mp.readers r WHERE r.queue = q.id AND r.reader = a_reader;
        END IF;
    END IF;
    status := pressure_mp.refusal(q, c, args, a_owner,
        CASE WHEN a_reader IS NULL THEN (args->>'limit')::bigint ELSE 1 END);
    IF status IS NOT NULL THEN
        RETURN pressure_mp.said(status);
    END IF;
    got := pressure_mp.remove_some(q, c, most, true);
    PERFORM pressure_mp.renew_lease(q.id, 'c', a_owner, c.lease);
    taken := pressure_mp.number_items(got.undo, q.number, 1);
    INSERT INTO pressure_mp.deliveries SELECT q.id, (u.e).number, a_owner, a_call,
            (args->>'most')::bigint, (u.e).token, false, u.e
        FROM (SELECT unnest(taken) AS e) u;
    IF (taken[1]).token <> '' THEN
        DELETE FROM pressure_mp.contents k WHERE k.queue = q.id AND k.token = (taken[1]).token;
    END IF;
    IF counts THEN
        INSERT INTO pressure_mp.readers
            VALUES (q.id, a_reader, 0, '{}', 0, pressure_mp.clock() + c.lease);
    END IF;
    RETURN pressure_mp.told('taken', (SELECT jsonb_agg(e.number) FROM unnest(taken) e),
        got.items, NULL);
END $$;

-- Take items before they are needed, behind the kept items; or note how many items a reader handed
-- out.
CREATE OR REPLACE FUNCTION pressure_mp.prefetch(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_reader text := args->>'reader';
    a_owner text := pressure_mp.owner_of(a_reader);
    a_call bigint := (args->>'call')::bigint;
    a_handed bigint := (args->>'handed')::bigint;
    kept integer := (args->>'kept')::integer;
    most bigint := (args->>'limit')::bigint;
    moment bigint := pressure_mp.clock();
    r pressure_mp.readers := pressure_mp.find_reader(q.id, a_reader);
    status text;
    taken pressure_mp.items[];
    got pressure_mp.reply;
    token text;
BEGIN
    IF most = 0 THEN
        IF r.call <> a_call OR r.until = 0 OR a_handed - r.handed > cardinality(r.entries) THEN
            RETURN pressure_mp.said('late');
        END IF;
        UPDATE pressure_mp.readers v SET until = moment + c.lease,
                handed = greatest(a_handed, v.handed),
                entries = v.entries[greatest(a_handed - v.handed, 0) + 1:]
            WHERE v.queue = q.id AND v.reader = a_reader;
        RETURN pressure_mp.told('taken', NULL, '{}', NULL);
    END IF;
    IF a_call <= r.call OR kept > cardinality(r.entries) THEN
        RETURN pressure_mp.said('late');
    END IF;
    r.entries := r.entries[cardinality(r.entries) - kept + 1:];
    status := pressure_mp.refusal(q, c, args, a_owner, 1);
    IF status IS NULL THEN
        SELECT i.token INTO token FROM pressure_mp.items i
            WHERE i.queue = q.id AND (i.rank, i.position) > (q.head_rank, q.head_position)
            ORDER BY i.rank, i.position LIMIT 1;
        status := CASE WHEN token <> '' THEN 'next_is_large' END;
    END IF;
    IF status IS NOT NULL THEN
        UPDATE pressure_mp.readers v SET call = a_call, entries = r.entries, handed = a_handed,
                until = CASE WHEN kept > 0 THEN moment + c.lease ELSE 0 END
            WHERE v.queue = q.id AND v.reader = a_reader AND r.call > 0;
        RETURN pressure_mp.said(status);
    END IF;
    most := least(most, pressure_mp.fair_share(q, c, a_reader));
    got := pressure_mp.remove_some(q, c, most, true);
    PERFORM pressure_mp.renew_lease(q.id, 'c', a_owner, c.lease);
    taken := pressure_mp.number_items(got.undo, q.number, 0);
    INSERT INTO pressure_mp.readers
        VALUES (q.id, a_reader, a_call, r.entries || taken, a_handed, moment + c.lease)
        ON CONFLICT (queue, reader) DO UPDATE SET call = excluded.call,
            entries = excluded.entries, handed = excluded.handed, until = excluded.until;
    RETURN pressure_mp.told('taken', NULL, got.items, NULL);
END $$;

-- Return the reply to a call that was made before and took n items, which are in flight; NULL if they
-- no longer are, and the call is to be made anew.
CREATE OR REPLACE FUNCTION pressure_mp.repeat_taken(q pressure_mp.queues, a_op text, args jsonb,
    n integer) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r pressure_mp.readers;
    numbers jsonb;
    contents bytea[];
BEGIN
    IF a_op = 'prefetch' THEN
        r := pressure_mp.find_reader(q.id, args->>'reader');
        IF r.call = (args->>'call')::bigint AND cardinality(r.entries) >= n THEN
            RETURN pressure_mp.told('taken', NULL,
                pressure_mp.items_of(r.entries[cardinality(r.entries) - n + 1:]), NULL);
        END IF;
        RETURN NULL;
    END IF;
    SELECT jsonb_agg(d.number ORDER BY (d.entry).rank, (d.entry).position),
            array_agg((d.entry).item ORDER BY (d.entry).rank, (d.entry).position)
        INTO numbers, contents
        FROM pressure_mp.deliveries d WHERE d.queue = q.id AND d.owner = args->>'owner'
            AND d.call = (args->>'call')::bigint;
    IF numbers IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN pressure_mp.told('taken', numbers, contents, NULL);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.find_reader(a_queue bigint, a_reader text)
RETURNS pressure_mp.readers LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r pressure_mp.readers;
BEGIN
    SELECT * INTO r FROM pressure_mp.readers v WHERE v.queue = a_queue AND v.reader = a_reader;
    IF NOT FOUND THEN
        r := ROW(a_queue, a_reader, 0, '{}', 0, 0);
    END IF;
    RETURN r;
END $$;

-- Note that a reader handed out so many items in all, and has no others any more.
CREATE OR REPLACE FUNCTION pressure_mp.end_reader(r pressure_mp.readers, a_handed bigint)
RETURNS pressure_mp.readers LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    r.handed := greatest(r.handed, least(a_handed, r.handed + cardinality(r.entries)));
    r.entries := '{}';
    r.until := 0;
    RETURN r;
END $$;

-- Requeue the items that a reader does not hand out. A record of its last call stays until its
-- owner's lease has ended, and its items are requeued.
CREATE OR REPLACE FUNCTION pressure_mp.end_prefetch(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before pressure_mp.readers := pressure_mp.find_reader(q.id, args->>'reader');
    r pressure_mp.readers := pressure_mp.end_reader(before, (args->>'handed')::bigint);
    a_owner text := pressure_mp.owner_of(r.reader);
BEGIN
    r.call := greatest(r.call, (args->>'call')::bigint);
    DELETE FROM pressure_mp.readers v WHERE v.queue = q.id AND v.reader = r.reader;
    INSERT INTO pressure_mp.readers SELECT (r).*;
    IF before.call = 0 AND NOT EXISTS (SELECT FROM pressure_mp.leases l
        WHERE l.queue = q.id AND l.role = 'c' AND l.owner = a_owner)
    THEN
        PERFORM pressure_mp.set_lease(q.id, 'c', a_owner, pressure_mp.clock() + c.lease);
    END IF;
    PERFORM pressure_mp.put_back(q, before.entries[r.handed - before.handed + 1:]);
    RETURN pressure_mp.said('number', to_jsonb(r.handed));
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.acknowledge(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    d pressure_mp.deliveries;
BEGIN
    IF args ? 'number' THEN
        DELETE FROM pressure_mp.deliveries v WHERE v.queue = q.id
            AND v.number = (args->>'number')::bigint AND v.owner = args->>'owner'
            RETURNING * INTO d;
        IF NOT FOUND THEN
            RETURN pressure_mp.said('late');
        ELSIF d.passed THEN
            RETURN pressure_mp.said('passed');
        END IF;
    ELSE
        UPDATE pressure_mp.deliveries v SET passed = true WHERE v.queue = q.id AND v.number =
            (SELECT min(w.number) FROM pressure_mp.deliveries w
                WHERE w.queue = q.id AND NOT w.passed)
            RETURNING * INTO d;
    END IF;
    IF d.token <> '' THEN
        PERFORM pressure_mp.end_content(q.id, d.token);
    END IF;
    RETURN pressure_mp.count_done(q);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.count_done(q pressure_mp.queues) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF pressure_mp.unfinished(q) <= 0 THEN
        RETURN pressure_mp.said('excess');
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, done = v.done + 1
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    RETURN pressure_mp.said('done');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.count_many_done(q pressure_mp.queues, n bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, done = v.done + n
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.set_aside(q pressure_mp.queues, args jsonb, a_item bytea)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF args ? 'number' THEN
        DELETE FROM pressure_mp.deliveries v WHERE v.queue = q.id
            AND v.number = (args->>'number')::bigint AND v.owner = args->>'owner'
            AND NOT v.passed;
        IF NOT FOUND THEN
            RETURN pressure_mp.said('late');
        END IF;
    END IF;
    IF substr(a_item, 1, 4) = decode('fa6d7031', 'hex') THEN
        DELETE FROM pressure_mp.contents k
            WHERE k.queue = q.id AND k.token = pressure_mp.token_of(a_item);
    END IF;
    INSERT INTO pressure_mp.rejected (queue, item) VALUES (q.id, a_item);
    PERFORM pressure_mp.count_many_done(q, 1);
    RETURN pressure_mp.said('done');
END $$;

-- End the deliveries of an owner, or some of them. Returns the items to requeue. Items that were
-- delivered too often are set aside.
CREATE OR REPLACE FUNCTION pressure_mp.end_deliveries(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.items[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    back pressure_mp.items[];
    tokens text[];
    too_often bytea[];
BEGIN
    WITH gone AS (
        DELETE FROM pressure_mp.deliveries v WHERE v.ctid = ANY (CASE WHEN args ? 'numbers'
            THEN ARRAY(SELECT f.at FROM jsonb_array_elements_text(args->'numbers') n,
                LATERAL (SELECT w.ctid AS at FROM pressure_mp.deliveries w WHERE w.queue = q.id
                    AND w.number = n::bigint AND w.owner = args->>'owner'
                    AND (NOT args ? 'call' OR w.call = (args->>'call')::bigint) OFFSET 0) f)
            ELSE ARRAY(SELECT w.ctid FROM pressure_mp.deliveries w
                WHERE w.queue = q.id AND w.owner = args->>'owner'
                    AND (NOT args ? 'call' OR w.call = (args->>'call')::bigint)) END)
            RETURNING *
    )
    SELECT array_agg(g.entry ORDER BY g.number) FILTER (WHERE NOT g.is_too_often),
            array_agg((g.entry).item ORDER BY g.number) FILTER (WHERE g.is_too_often),
            array_agg(g.token) FILTER (WHERE g.token <> '' AND NOT g.is_too_often)
        INTO back, too_often, tokens
        FROM (SELECT d.number, d.token,
                CASE WHEN args ? 'numbers' THEN ROW(e.queue, e.rank, e.position, e.number,
                    e.deliveries - 1, e.size, e.token, e.tenant, e.item)::pressure_mp.items
                    ELSE d.entry END AS entry,
                NOT args ? 'numbers' AND NOT q.dropping AND d.most > 0
                    AND d.most <= e.deliveries AS is_too_often
            FROM gone d, LATERAL (SELECT (d.entry).*) e WHERE NOT d.passed) g;
    IF q.dropping THEN
        PERFORM pressure_mp.end_content(q.id, u.token) FROM unnest(tokens) u (token);
    ELSIF tokens IS NOT NULL THEN
        INSERT INTO pressure_mp.contents SELECT q.id, u.token, NULL FROM unnest(tokens) u (token)
            ON CONFLICT (queue, token) DO UPDATE SET until = NULL;
    END IF;
    IF too_often IS NOT NULL THEN
        INSERT INTO pressure_mp.rejected (queue, item) SELECT q.id, u.item
            FROM unnest(too_often) WITH ORDINALITY u (item, o) ORDER BY u.o;
        PERFORM pressure_mp.count_many_done(q, cardinality(too_often));
    END IF;
    RETURN back;
END $$;

-- Requeue the items that an owner has in flight, or some of them.
CREATE OR REPLACE FUNCTION pressure_mp.requeue(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_owner text := args->>'owner';
    whole boolean := NOT args ? 'call' AND NOT args ? 'numbers';
    back pressure_mp.items[];
    before pressure_mp.readers;
    r pressure_mp.readers;
BEGIN
    IF args ? 'seen' AND NOT EXISTS (SELECT FROM pressure_mp.leases l WHERE l.queue = q.id
        AND l.role = 'c' AND l.owner = a_owner AND l.until = (args->>'seen')::bigint)
    THEN
        RETURN pressure_mp.said('renewed');
    END IF;
    back := pressure_mp.end_deliveries(q, args);
    -- An item that no get returned does not count as delivered.
    IF NOT args ? 'numbers' AND NOT q.dropping AND cardinality(back) > 0 THEN
        PERFORM pressure_mp.count_one(q.id, 'T-R', cardinality(back));
    END IF;
    IF whole THEN
        DELETE FROM pressure_mp.leases l
            WHERE l.queue = q.id AND l.role = 'c' AND l.owner = a_owner;
        FOR before IN
            DELETE FROM pressure_mp.readers v WHERE v.queue = q.id
                AND pressure_mp.owner_of(v.reader) = a_owner RETURNING *
        LOOP
            r := pressure_mp.end_reader(before,
                coalesce((args->'handed'->>before.reader)::bigint, 0));
            back := back || before.entries[r.handed - before.handed + 1:];
            -- It can ask for another lease how many items count as handed out.
            CONTINUE WHEN before.until = 0 OR before.call = 0;
            INSERT INTO pressure_mp.readers SELECT (r).*;
            PERFORM pressure_mp.set_lease(q.id, 'c', a_owner, pressure_mp.clock() + c.lease);
        END LOOP;
    END IF;
    PERFORM pressure_mp.put_back(q, back);
    RETURN pressure_mp.said('done');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.leases_of(a_queue bigint, a_role text) RETURNS jsonb
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(jsonb_object_agg(l.owner, l.until), '{}') FROM pressure_mp.leases l
        WHERE l.queue = a_queue AND l.role = a_role
$$;

CREATE OR REPLACE FUNCTION pressure_mp.set_lease(a_queue bigint, a_role text, a_owner text,
    a_until bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.leases l SET until = a_until
        WHERE l.ctid = (SELECT v.ctid FROM pressure_mp.leases v WHERE v.queue = a_queue
            AND v.role = a_role AND v.owner = a_owner ORDER BY v.until DESC LIMIT 1);
    IF NOT FOUND THEN
        INSERT INTO pressure_mp.leases VALUES (a_queue, a_role, a_owner, a_until);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.renew(q pressure_mp.queues, c pressure_mp.caller, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment bigint := pressure_mp.clock();
BEGIN
    IF (args->>'consumes')::boolean THEN
        PERFORM pressure_mp.set_lease(q.id, 'c', args->>'owner', moment + c.lease);
    END IF;
    IF (args->>'produces')::boolean THEN
        PERFORM pressure_mp.set_lease(q.id, 'p', args->>'owner', moment + c.lease);
        UPDATE pressure_mp.queues v SET version = v.version + 1, had_producers = true
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id AND NOT v.had_producers;
    END IF;
    RETURN pressure_mp.said('attendance', jsonb_build_object('now', moment,
        'consumers', pressure_mp.leases_of(q.id, 'c'),
        'producers', pressure_mp.leases_of(q.id, 'p')));
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.retire(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF args ? 'seen' AND NOT EXISTS (SELECT FROM pressure_mp.leases l WHERE l.queue = q.id
        AND l.role = 'p' AND l.owner = args->>'owner' AND l.until = (args->>'seen')::bigint)
    THEN
        RETURN pressure_mp.said('renewed');
    END IF;
    DELETE FROM pressure_mp.leases l
        WHERE l.queue = q.id AND l.role = 'p' AND l.owner = args->>'owner';
    RETURN pressure_mp.said('done');
END $$;
