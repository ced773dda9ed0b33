-- Functions that create, inspect and end a queue.

-- Create a queue, or check that the existing one has the same discipline. The reply has the settings
-- of a queue of tasks, the bound of any other.
CREATE OR REPLACE FUNCTION pressure_mp.open_queue(q pressure_mp.queues, a_slot bigint, a_prefix text,
    a_kind text, a_name text, a_discipline text, args jsonb) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    status text := CASE args->>'how' WHEN 'create' THEN 'existing' ELSE 'opened' END;
BEGIN
    IF q.id IS NULL THEN
        IF args->>'how' = 'attach' THEN
            RETURN pressure_mp.said('missing');
        END IF;
        DELETE FROM pressure_mp.calls v WHERE v.made < clock_timestamp() - interval '1 day';
        INSERT INTO pressure_mp.queues
                (slot, prefix, kind, name, discipline, bound, settings, created, has_line)
            VALUES (a_slot, a_prefix, a_kind, a_name, a_discipline,
                coalesce((args->>'bound')::bigint, 0), args->'settings', pressure_mp.clock(),
                EXISTS (SELECT FROM pressure_mp.waiting w WHERE w.slot = a_slot))
            RETURNING * INTO q;
        status := 'opened';
    ELSIF status = 'opened' AND q.discipline <> a_discipline THEN
        RETURN pressure_mp.said('mismatch', jsonb_build_array(q.discipline, a_discipline));
    END IF;
    IF status = 'opened' THEN
        PERFORM pressure_mp.enlist(q, args);
    END IF;
    RETURN pressure_mp.said(status, coalesce(q.settings, to_jsonb(q.bound)));
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.enlist(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF args ? 'user' THEN
        INSERT INTO pressure_mp.users VALUES (q.id, args->>'user') ON CONFLICT DO NOTHING;
    END IF;
    RETURN pressure_mp.said('done');
END $$;

-- Remove users; the last one removes the queue. A queue that had no users stays.
CREATE OR REPLACE FUNCTION pressure_mp.dismiss(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pressure_mp.users u WHERE u.queue = q.id) THEN
        RETURN pressure_mp.said(CASE q.kind WHEN 'items' THEN 'missing' ELSE 'number' END,
            to_jsonb(0));
    END IF;
    DELETE FROM pressure_mp.users u WHERE u.queue = q.id AND args->'users' ? u.who;
    SELECT count(*) INTO n FROM pressure_mp.users u WHERE u.queue = q.id;
    IF n = 0 THEN
        PERFORM pressure_mp.drop_queue(q);
    END IF;
    RETURN pressure_mp.said('number', to_jsonb(n));
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.drop_queue(q pressure_mp.queues) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pressure_mp.queues v
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    DELETE FROM pressure_mp.items v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.tenants v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.deliveries v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.readers v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.leases v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.users v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.rejected v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.contents v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.chunks v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.beginnings v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.tasks v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.groups v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.holders v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.limits v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.key_logs v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.ways v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.results v WHERE v.queue = q.id;
    PERFORM pressure_mp.tell(v.listener, v.session, NULL) FROM pressure_mp.inboxes v
        WHERE v.queue = q.id AND v.session IS NOT NULL;
    DELETE FROM pressure_mp.inboxes v WHERE v.queue = q.id;
    PERFORM pressure_mp.tell(v.listener, v.session, NULL) FROM pressure_mp.watchers v
        WHERE v.slot = q.slot;
    DELETE FROM pressure_mp.watchers v WHERE v.slot = q.slot;
    DELETE FROM pressure_mp.notices v WHERE v.queue = q.id;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.close_queue(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.closed AND args ? 'once' THEN
        RETURN pressure_mp.said('closed');
    END IF;
    IF NOT q.closed THEN
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, closed = true, producer = c.client
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    END IF;
    IF args ? 'immediate' THEN
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, dropping = true, done = v.done + v.length, length = 0,
                idle_keys = 0
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
        DELETE FROM pressure_mp.items v WHERE v.queue = q.id;
        DELETE FROM pressure_mp.tenants v WHERE v.queue = q.id;
        PERFORM pressure_mp.end_queued_contents(q.id);
    END IF;
    RETURN pressure_mp.said('done');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.get_stats(q pressure_mp.queues) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN pressure_mp.said('stats', jsonb_build_object(
        'length', q.length,
        'maxsize', q.bound,
        'closed', q.closed,
        'produced_messages', q.produced_messages,
        'produced_bytes', q.produced_bytes,
        'consumed_messages', q.consumed_messages,
        'consumed_bytes', q.consumed_bytes,
        'producer', q.producer,
        'consumer', q.consumer,
        'unfinished', pressure_mp.unfinished(q),
        'rejected', (SELECT count(*) FROM pressure_mp.rejected r WHERE r.queue = q.id),
        'in_flight', (SELECT count(*) FROM pressure_mp.deliveries d
                WHERE d.queue = q.id AND NOT d.passed)
            + (SELECT coalesce(sum(cardinality(r.entries)), 0)
                FROM pressure_mp.readers r WHERE r.queue = q.id)));
END $$;

-- Return up to so many sessions of a line, each with its client, since when it waits, when it last
-- called, and its lease.
CREATE OR REPLACE FUNCTION pressure_mp.line(a_slot bigint, a_line text, a_limit bigint)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pressure_mp.first_place(a_slot, a_line);
    RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(w.client, w.since, w.seen, w.lease)), '[]')
        FROM (SELECT * FROM pressure_mp.waiting v WHERE v.slot = a_slot AND v.line = a_line
                AND v.place > pressure_mp.passed(a_slot)
            ORDER BY v.place LIMIT a_limit) w);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.inspect(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    most bigint := (args->>'limit')::bigint + 2;
BEGIN
    RETURN pressure_mp.said('inspection', jsonb_build_object(
        'now', pressure_mp.clock(),
        'length', q.length,
        'bound', q.bound,
        'closed', q.closed,
        'producer', q.producer,
        'consumer', q.consumer,
        'putters', pressure_mp.line(c.slot, 'p', most),
        'takers', pressure_mp.line(c.slot, 'c', most)));
END $$;

-- Return the next items of a fair queue, each behind its key.
CREATE OR REPLACE FUNCTION pressure_mp.get_snapshot(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN pressure_mp.told('snapshot',
        jsonb_build_object('length', q.length, 'current', (SELECT count(*)
            FROM pressure_mp.items i WHERE i.queue = q.id AND i.rank = int8send(q.round))),
        (SELECT array_agg(p.part ORDER BY n.rank, n.position, p.o)
            FROM (SELECT i.* FROM pressure_mp.items i WHERE i.queue = q.id
                ORDER BY i.rank, i.position LIMIT (args->>'limit')::bigint) n,
            LATERAL (VALUES (1, n.tenant), (2, n.item)) p (o, part)),
        NULL);
END $$;

-- Drop the queued items, which count as got, and as done.
CREATE OR REPLACE FUNCTION pressure_mp.purge(q pressure_mp.queues) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, done = v.done + v.length, length = 0, idle_keys = 0,
            consumed_messages = v.consumed_messages + v.length,
            consumed_bytes = greatest(v.consumed_bytes, v.produced_bytes)
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id AND v.length > 0;
    DELETE FROM pressure_mp.items v WHERE v.queue = q.id;
    DELETE FROM pressure_mp.tenants v WHERE v.queue = q.id;
    PERFORM pressure_mp.end_queued_contents(q.id);
    RETURN pressure_mp.said('number', to_jsonb(q.length));
END $$;

-- Remove and return the oldest item that was set aside and is equal to this one.
CREATE OR REPLACE FUNCTION pressure_mp.remove_rejected(a_queue bigint, a_item bytea)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pressure_mp.rejected v WHERE v.queue = a_queue AND v.number = (
        SELECT r.number FROM pressure_mp.rejected r WHERE r.queue = a_queue AND r.item = a_item
            ORDER BY r.number LIMIT 1);
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.requeue_rejected(q pressure_mp.queues, c pressure_mp.caller,
    a_item bytea) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r pressure_mp.reply;
BEGIN
    IF q.closed THEN
        RETURN pressure_mp.said('closed');
    END IF;
    IF NOT pressure_mp.remove_rejected(q.id, a_item) THEN
        RETURN pressure_mp.said('absent');
    END IF;
    IF substr(a_item, 1, 4) = decode('fa6d7031', 'hex') AND EXISTS (SELECT FROM pressure_mp.chunks k
        WHERE k.queue = q.id AND k.token = pressure_mp.token_of(a_item))
    THEN
        PERFORM pressure_mp.keep(q.id, pressure_mp.token_of(a_item), c.lease);
    END IF;
    r := pressure_mp.put(q, c, '{"overfill": true}', ARRAY[a_item], ARRAY[]::bytea[]);
    RETURN pressure_mp.said('done');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.drop_rejected(q pressure_mp.queues, a_item bytea)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT pressure_mp.remove_rejected(q.id, a_item) THEN
        RETURN pressure_mp.said('absent');
    END IF;
    IF substr(a_item, 1, 4) = decode('fa6d7031', 'hex') THEN
        PERFORM pressure_mp.end_content(q.id, pressure_mp.token_of(a_item));
    END IF;
    RETURN pressure_mp.said('done');
END $$;

-- Requests that only need the row of the queue.
CREATE OR REPLACE FUNCTION pressure_mp.look(q pressure_mp.queues, a_op text, args jsonb,
    a_items bytea[])
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    CASE a_op
    WHEN 'get_length' THEN
        RETURN pressure_mp.said('number', to_jsonb(q.length));
    WHEN 'is_closed' THEN
        RETURN pressure_mp.said('closed',
            to_jsonb(CASE WHEN args ? 'immediate' THEN q.dropping ELSE q.closed END));
    WHEN 'get_discipline' THEN
        RETURN pressure_mp.said('discipline', to_jsonb(q.discipline));
    WHEN 'get_users' THEN
        RETURN pressure_mp.said('users', (SELECT coalesce(jsonb_agg(u.who), '[]')
            FROM pressure_mp.users u WHERE u.queue = q.id));
    WHEN 'get_stats' THEN
        RETURN pressure_mp.get_stats(q);
    WHEN 'get_rejected' THEN
        RETURN pressure_mp.told('rejected', NULL, (SELECT array_agg(v.item ORDER BY v.number)
            FROM (SELECT r.number, r.item FROM pressure_mp.rejected r WHERE r.queue = q.id
                ORDER BY r.number LIMIT (args->>'limit')::bigint) v), NULL);
    WHEN 'peek' THEN
        RETURN pressure_mp.told('items', NULL, (
            SELECT array_agg(p.part ORDER BY v.rank, v.position, p.o)
            FROM (SELECT i.rank, i.position, i.item, i.tenant FROM pressure_mp.items i
                    WHERE i.queue = q.id AND (i.rank, i.position) > (q.head_rank, q.head_position)
                ORDER BY i.rank, i.position
                OFFSET (args->>'start')::bigint LIMIT (args->>'limit')::bigint) v,
            LATERAL (VALUES (1, v.item), (2, CASE q.discipline WHEN 'priority' THEN v.rank
                WHEN 'fair' THEN decode('3120', 'hex') || v.tenant ELSE '' END)) p (o, part)), NULL);
    WHEN 'get_snapshot' THEN
        RETURN pressure_mp.get_snapshot(q, args);
    WHEN 'get_keys' THEN
        RETURN pressure_mp.told('keys', NULL, (SELECT array_agg(t.key) FROM pressure_mp.tenants t
            WHERE t.queue = q.id AND t.queued > 0), NULL);
    WHEN 'get_queued' THEN
        RETURN pressure_mp.said('number', to_jsonb(coalesce(
            (pressure_mp.find_tenant(q.id, a_items[1])).queued, 0)));
    END CASE;
END $$;
