-- Calls in a caller's own transaction: they are staged, and made when it commits. Until then no
-- lock is held, and no other transaction sees them.

-- Stage a call. The reply is the one that it would get now; the queue may change before the
-- transaction commits, which then fails.
CREATE OR REPLACE FUNCTION pressure_mp.stage(a_prefix text, a_kind text, a_name text,
    a_discipline text, a_client text, a_lease bigint, a_op text, args jsonb, a_items bytea[],
    a_keys bytea[], OUT status text, OUT info jsonb, OUT items bytea[], OUT xid text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
    r pressure_mp.reply;
    a_slot bigint := pressure_mp.slot(a_prefix, a_kind, a_name);
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        status := 'isolation';
        info := to_jsonb(current_setting('transaction_isolation'));
        RETURN;
    END IF;
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, a_kind, a_name);
    a_items := coalesce(a_items, '{}');
    a_keys := coalesce(a_keys, '{}');
    IF q.discipline IS DISTINCT FROM a_discipline THEN
        r.status := 'missing';
    ELSIF q.closed AND a_op IN ('put', 'store_chunks') THEN
        r.status := 'closed';
    ELSIF a_op = 'store_chunks' THEN
        r := pressure_mp.store_unseen(q, args, a_items);
    ELSIF a_kind = 'items' THEN
        r := pressure_mp.foresee_items(q, a_slot, a_op, args, a_items, a_keys);
    ELSE
        r := pressure_mp.foresee_tasks(q, a_op, args, a_items);
    END IF;
    IF r.status = 'added' THEN
        a_items := a_items[1:(r.info)::bigint];
    END IF;
    IF a_op = 'put' THEN
        args := args || '{"overfill": true}';  -- at the commit it does not wait
    END IF;
    IF (r.status IN ('added', 'ids', 'task') OR (r.status = 'acknowledged' AND r.info->'refused' = '{}')
        OR (r.status = 'done' AND a_op = 'acknowledge'))
    THEN
        INSERT INTO pressure_mp.staged
                (slot, prefix, kind, name, discipline, client, lease, op, args, items, keys)
            VALUES (a_slot, a_prefix, a_kind, a_name, a_discipline, a_client, a_lease, a_op, args,
                a_items, a_keys);
        xid := pg_current_xact_id()::text;
    END IF;
    status := r.status; info := r.info; items := r.items;
END $$;

-- Chunks are stored at once: their transaction alone sees them.
CREATE OR REPLACE FUNCTION pressure_mp.store_unseen(q pressure_mp.queues, args jsonb,
    a_items bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO pressure_mp.chunks
        SELECT q.id, args->>'token', (args->>'first')::bigint + u.o - 1, u.chunk
        FROM unnest(a_items) WITH ORDINALITY u (chunk, o);
    INSERT INTO pressure_mp.contents VALUES (q.id, args->>'token', 9223372036854775807)
        ON CONFLICT DO NOTHING;
    RETURN pressure_mp.said('done');
END $$;

-- Return the reply that a call to a queue of items would get now.
CREATE OR REPLACE FUNCTION pressure_mp.foresee_items(q pressure_mp.queues, a_slot bigint,
    a_op text, args jsonb, a_items bytea[], a_keys bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    room bigint := cardinality(a_items);
    other bytea;
    d pressure_mp.deliveries;
BEGIN
    CASE a_op
    WHEN 'put' THEN
        IF q.bound > 0 THEN
            room := least(room, q.bound - q.length - (SELECT coalesce(sum(cardinality(s.items)), 0)
                FROM pressure_mp.staged s WHERE s.transaction = pg_current_xact_id()
                    AND s.slot = a_slot AND s.op = 'put'));
            IF room <= 0 THEN
                RETURN pressure_mp.said('no_space', to_jsonb(q.length));
            END IF;
        END IF;
        IF q.discipline = 'priority' AND NOT pressure_mp.are_comparable(q, a_keys[:room]) THEN
            FOR at IN 1 .. room LOOP
                other := pressure_mp.find_not_comparable(q, a_keys[at]);
                IF other IS NOT NULL THEN
                    RETURN pressure_mp.told('not_comparable', NULL, ARRAY[other], NULL);
                END IF;
            END LOOP;
        END IF;
        RETURN pressure_mp.said('added', to_jsonb(room));
    WHEN 'acknowledge' THEN
        SELECT * INTO d FROM pressure_mp.deliveries v WHERE v.queue = q.id
            AND v.number = (args->>'number')::bigint AND v.owner = args->>'owner';
        IF NOT FOUND THEN
            RETURN pressure_mp.said('late');
        ELSIF d.passed THEN
            RETURN pressure_mp.said('passed');
        END IF;
        RETURN pressure_mp.said('done');
    END CASE;
END $$;

-- Return the reply that a call to a queue of tasks would get now, with an acknowledged task as it
-- is.
CREATE OR REPLACE FUNCTION pressure_mp.foresee_tasks(q pressure_mp.queues, a_op text, args jsonb,
    parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
    r pressure_mp.reply;
    ids bytea[];
    n bigint;
    bound bigint := (q.settings->>'maxsize')::bigint;
    room bigint;
BEGIN
    CASE a_op
    WHEN 'put' THEN
        n := (cardinality(parts) - 2) / 2;
        IF bound > 0 THEN
            room := bound - pressure_mp.count_queued(q.id) - (
                SELECT coalesce(sum((cardinality(s.items) - 2) / 2), 0) FROM pressure_mp.staged s
                    WHERE s.transaction = pg_current_xact_id() AND s.slot = q.slot AND s.op = 'put');
            IF room < n THEN
                RETURN pressure_mp.said('no_space', to_jsonb(bound - room));
            END IF;
        END IF;
        ids := parts[3:2 + n];
        SELECT u.id, f.state INTO t.id, t.state
            FROM unnest(ids) WITH ORDINALITY u (id, o), LATERAL (SELECT v.state
                FROM pressure_mp.tasks v WHERE v.queue = q.id AND v.id = u.id OFFSET 0) f
            ORDER BY u.o LIMIT 1;
        IF FOUND THEN
            RETURN pressure_mp.told('there', to_jsonb(t.state), ARRAY[t.id], NULL);
        END IF;
        RETURN pressure_mp.told('ids', NULL, ids, NULL);
    WHEN 'ack' THEN
        t := pressure_mp.get_task(q.id, parts[1]);
        r := pressure_mp.not_held(t, args->>'owner', (args->>'call')::bigint);
        IF r.status IS NOT NULL THEN
            RETURN r;
        ELSIF args ? 'made_of' AND parts[5] <> t.data THEN
            RETURN pressure_mp.said('changed');
        END IF;
        RETURN pressure_mp.tell_tasks('task', ARRAY[t], args ? 'whole');
    WHEN 'ack_many' THEN
        RETURN pressure_mp.acknowledged('T', NULL, 0, (
            SELECT coalesce(jsonb_object_agg(f.o - 1, pressure_mp.problem(q, f.t, f.problem)), '{}')
            FROM pressure_mp.find_held(q, args, parts) f WHERE f.problem IS NOT NULL));
    END CASE;
END $$;

-- Make ids for so many tasks, which no other task gets, even if these are never put. Does not wait
-- for the disk: the commit of these tasks comes later in the log, and waits for this too.
CREATE OR REPLACE FUNCTION pressure_mp.make_ids(q pressure_mp.queues, moment bigint, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    counts boolean := args->>'ids' = 'auto_increment';
    n bigint := (args->>'number')::bigint;
    ids bytea[] := pressure_mp.free_ids(q.id,
        CASE WHEN counts THEN q.counter + 1 ELSE greatest(moment * 1000, q.arrival + 1) END, n);
    last bigint := convert_from(ids[n], 'UTF8')::bigint;
BEGIN
    UPDATE pressure_mp.queues v
        SET version = v.version + 1,
            counter = CASE WHEN counts THEN last ELSE v.counter END,
            arrival = CASE WHEN counts THEN v.arrival ELSE last END
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN pressure_mp.told('ids', NULL, ids, NULL);
END $$;

-- Make the calls of a transaction that commits. The first of its rows makes all of them, after it
-- took the locks of all their queues, which all transactions take in the same order.
CREATE OR REPLACE FUNCTION pressure_mp.call_staged() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s pressure_mp.staged;
    a_slot bigint;
BEGIN
    PERFORM FROM pressure_mp.staged v
        WHERE v.transaction = NEW.transaction AND v.number = NEW.number;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    FOR a_slot IN SELECT DISTINCT v.slot FROM pressure_mp.staged v
        WHERE v.transaction = NEW.transaction ORDER BY v.slot
    LOOP
        PERFORM pg_advisory_xact_lock(a_slot);
    END LOOP;
    FOR s IN SELECT * FROM pressure_mp.staged v
        WHERE v.transaction = NEW.transaction ORDER BY v.number
    LOOP
        PERFORM pressure_mp.call_one_staged(s);
    END LOOP;
    DELETE FROM pressure_mp.staged v WHERE v.transaction = NEW.transaction;
    RETURN NULL;
END $$;

-- Make one call. A refused call makes the transaction fail: all of it is done, or nothing.
CREATE OR REPLACE FUNCTION pressure_mp.call_one_staged(s pressure_mp.staged) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r record;
    done boolean;
    what text;
BEGIN
    SELECT * INTO r FROM pressure_mp.call(s.prefix, s.kind, s.name, s.discipline, s.client,
        s.lease, '', false, NULL, NULL, 0, false, s.op, s.args, s.items, s.keys);
    done := CASE r.status
        WHEN 'added' THEN (r.info)::bigint = cardinality(s.items)
        WHEN 'acknowledged' THEN r.info->'refused' = '{}'
        ELSE r.status IN ('done', 'ids', 'task') END;
    IF done THEN
        RETURN;
    END IF;
    what := CASE s.op WHEN 'put' THEN 'put into' ELSE 'acknowledged in' END;
    RAISE 'nothing of this transaction is done: what it % queue "%" is refused at its commit: %',
        what, s.name,
        CASE
            WHEN r.status = 'missing' THEN 'the queue was deleted meanwhile'
            WHEN r.status = 'closed' THEN 'the queue was shut down meanwhile'
            WHEN r.status = 'there' THEN 'there is a task of that id'
            WHEN r.status IN ('added', 'not_comparable')
                THEN 'its priority cannot be compared with those that are queued'
            WHEN r.status = 'lost' THEN 'the queue was deleted, and made again, meanwhile'
            WHEN s.op = 'acknowledge'
                THEN 'it went back to the queue, or was acknowledged, meanwhile'
            ELSE 'its process no longer has it: it was given back, processed or changed meanwhile'
        END
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;
