-- Functions that put and take items.

-- Insert items: behind the others, or before them in a queue that is last in, first out, or by the
-- rank of each. Returns the bytes of these items with their contents. "large": one of them may be.
CREATE OR REPLACE FUNCTION pressure_mp.insert_items(q pressure_mp.queues, new bytea[], ranks bytea[],
    keys bytea[], large boolean) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    bytes bigint;
BEGIN
    WITH inserted AS (
        INSERT INTO pressure_mp.items
        SELECT q.id, coalesce(u.rank, ''),
            CASE q.discipline WHEN 'lifo' THEN -q.position - u.o ELSE q.position + u.o END, 0, 0,
            CASE WHEN large THEN (pressure_mp.weigh(q.id, u.item)).size
                ELSE octet_length(u.item) END,
            CASE WHEN large THEN (pressure_mp.weigh(q.id, u.item)).token ELSE '' END,
            CASE q.discipline WHEN 'fair' THEN pressure_mp.tenant_of(u.key) END, u.item
        FROM unnest(new, ranks, keys[:cardinality(new)]) WITH ORDINALITY u (item, rank, key, o)
        RETURNING size
    )
    SELECT sum(size) INTO bytes FROM inserted;
    RETURN bytes;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.put(q pressure_mp.queues, c pressure_mp.caller, args jsonb,
    a_items bytea[], a_keys bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    added bigint := cardinality(a_items);
    bytes bigint;
    large boolean;
    other bytea;
    ranks bytea[];
    woken bigint;
BEGIN
    IF q.closed THEN
        RETURN pressure_mp.said('closed');
    END IF;
    IF args ? 'has_content' THEN
        UPDATE pressure_mp.contents k SET until = pressure_mp.clock() + greatest(c.lease, 3000)
            WHERE k.queue = q.id AND k.token = pressure_mp.token_of(a_items[1])
                AND (k.until IS NULL OR k.until > pressure_mp.clock());
        IF NOT FOUND THEN
            RETURN pressure_mp.said('lost');
        END IF;
    END IF;
    IF q.bound > 0 AND NOT args ? 'overfill' THEN
        added := least(added, greatest(q.bound - q.length, 0));
    END IF;
    IF added = 0 OR (args ? 'waits' AND pressure_mp.yields(c, 'p', CASE WHEN q.bound > 0
        THEN q.bound - q.length - cardinality(a_items) ELSE 'infinity'::float8 END))
    THEN
        RETURN pressure_mp.said('no_space', to_jsonb(q.length));
    END IF;
    IF q.discipline = 'lifo' THEN
        IF -q.position - added <= q.head_position THEN
            q.head_position := -q.position - added - 1;
        END IF;
    ELSIF q.discipline = 'priority' THEN
        IF q.length = 0 THEN
            q.ranks := '{}';
            q.positions := '{}';
        END IF;
        IF added > 1 THEN
            added := pressure_mp.count_comparable(q, a_keys[:added]);
        END IF;
        ranks := a_keys[:added];
        IF added > 1 THEN
            q := pressure_mp.note_places(q, ranks,
                ARRAY(SELECT generate_series(q.position + 1, q.position + added)));
        ELSE
            other := pressure_mp.find_not_comparable(q, ranks[1]);
            IF other IS NOT NULL THEN
                RETURN pressure_mp.told('not_comparable', NULL, ARRAY[other], NULL);
            END IF;
            q := pressure_mp.note_places(q, ranks, ARRAY[q.position + 1]);
        END IF;
    ELSIF q.discipline = 'fair' THEN
        IF added > 1 THEN
            SELECT * INTO ranks, woken FROM pressure_mp.enter_rounds(q, a_keys[:added]);
        ELSE
            SELECT ARRAY[e.rank], e.woken INTO ranks, woken
                FROM pressure_mp.enter_round(q, a_keys[1]) e;
        END IF;
        q.idle_keys := q.idle_keys - woken;
    END IF;
    a_items := a_items[:added];
    IF added = 1 THEN
        large := substr(a_items[1], 1, 4) = decode('fa6d7031', 'hex');
    ELSE
        large := EXISTS (SELECT FROM unnest(a_items) item
            WHERE substr(item, 1, 4) = decode('fa6d7031', 'hex'));
    END IF;
    IF added = 1 AND NOT large THEN
        bytes := octet_length(a_items[1]);
        INSERT INTO pressure_mp.items VALUES (q.id, coalesce(ranks[1], ''),
            CASE q.discipline WHEN 'lifo' THEN -q.position - 1 ELSE q.position + 1 END,
            0, 0, bytes, '',
            CASE q.discipline WHEN 'fair' THEN pressure_mp.tenant_of(a_keys[1]) END, a_items[1]);
    ELSE
        bytes := pressure_mp.insert_items(q, a_items, ranks, a_keys, large);
    END IF;
    IF large THEN
        UPDATE pressure_mp.contents k SET until = NULL
            WHERE k.queue = q.id AND k.token IN (SELECT pressure_mp.token_of(item)
                FROM unnest(a_items) item WHERE substr(item, 1, 4) = decode('fa6d7031', 'hex'));
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1,
            length = q.length + added, position = q.position + added, producer = c.client,
            produced_messages = q.produced_messages + added,
            produced_bytes = q.produced_bytes + bytes, head_rank = q.head_rank,
            head_position = q.head_position, ranks = q.ranks, positions = q.positions,
            idle_keys = q.idle_keys
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    RETURN pressure_mp.said('added', to_jsonb(added));
END $$;

-- Return the reason why a caller gets no item now; NULL when it gets one.
CREATE OR REPLACE FUNCTION pressure_mp.refusal(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb,
    a_owner text, a_limit bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.length = 0 THEN
        IF q.closed THEN
            RETURN 'closed';
        END IF;
        IF args ? 'until_ended' AND pressure_mp.has_ended(q, a_owner) THEN
            RETURN 'ended';
        END IF;
        RETURN 'no_item';
    END IF;
    IF args ? 'waits' AND pressure_mp.yields(c, 'c', q.length - a_limit) THEN
        RETURN 'no_item';
    END IF;
    RETURN NULL;
END $$;

-- Return how many items one reader may take: a share among the sessions that wait or consume.
CREATE OR REPLACE FUNCTION pressure_mp.fair_share(q pressure_mp.queues, c pressure_mp.caller,
    a_reader text)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT greatest(q.length / (1 + pressure_mp.count_others(c, 'c')
            + count(*)), 1)
        FROM pressure_mp.readers r
        WHERE r.queue = q.id AND r.reader <> a_reader AND r.until >= pressure_mp.clock()
$$;

-- Remove the next item, and the items that one call may take together with it. An item whose
-- content is in chunks is taken alone. With "departs", the queue reserves a number for each item
-- without one. The reply has the items, and in "undo" their entries.
CREATE OR REPLACE FUNCTION pressure_mp.remove_some(q pressure_mp.queues, c pressure_mp.caller,
    a_limit bigint, departs boolean) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    removed pressure_mp.items[];
    contents bytea[];
    places tid[];
    one pressure_mp.items;
    bytes bigint;
    n bigint := 1;
    without_number bigint;
    turn bigint := q.round;
BEGIN
    IF q.ranks IS NOT NULL THEN
        SELECT * INTO q.ranks, q.positions
            FROM pressure_mp.skip_ranks(q.id, q.ranks, q.positions);
        q.head_rank := q.ranks[1];
        q.head_position := q.positions[1];
    END IF;
    IF a_limit <= 1 THEN
        DELETE FROM pressure_mp.items i WHERE i.ctid = (SELECT v.ctid FROM pressure_mp.items v
            WHERE v.queue = q.id AND (v.rank, v.position) > (q.head_rank, q.head_position)
            ORDER BY v.rank, v.position LIMIT 1) RETURNING i.* INTO one;
        without_number := (one.number = 0)::integer;
        removed := ARRAY[one];
        contents := ARRAY[one.item];
        bytes := one.size;
    ELSE
        places := ARRAY(SELECT f.there FROM (
            SELECT v.there, v.o = 1 OR (sum(v.bytes) OVER w <= 1000000
                    AND bool_and(v.token = '') OVER w) AS fits
                FROM pressure_mp.next_items(q, least(a_limit, 1000))
                    WITH ORDINALITY v (there, token, bytes, o)
                WINDOW w AS (ORDER BY v.o ROWS UNBOUNDED PRECEDING)) f
            WHERE f.fits);
        WITH gone AS (
            DELETE FROM pressure_mp.items i WHERE i.ctid = ANY (places) RETURNING i
        )
        SELECT array_agg(g.i), array_agg((g.i).item), sum((g.i).size), count(*),
                count(*) FILTER (WHERE (g.i).number = 0)
            INTO removed, contents, bytes, n, without_number
            FROM (SELECT v.i FROM gone v ORDER BY (v.i).rank, (v.i).position) g;
        one := removed[n];
    END IF;
    IF q.discipline = 'fair' THEN
        turn := ('x' || encode(one.rank, 'hex'))::bit(64)::bigint;
        q.idle_keys := q.idle_keys + pressure_mp.leave_rounds(q.id, removed);
        IF q.idle_keys > 1000 THEN
            DELETE FROM pressure_mp.tenants t WHERE t.queue = q.id AND t.queued = 0;
            q.idle_keys := 0;
        END IF;
    END IF;
    IF q.ranks IS NOT NULL THEN
        WHILE q.ranks[1] < one.rank LOOP  -- all items of this rank are removed
            q.ranks := q.ranks[2:];
            q.positions := q.positions[2:];
        END LOOP;
        q.positions[1] := one.position;
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, length = q.length - n, consumer = c.client, round = turn,
            number = q.number + CASE WHEN departs THEN without_number ELSE 0 END,
            head_rank = one.rank, head_position = one.position,
            ranks = q.ranks, positions = q.positions, idle_keys = q.idle_keys,
            consumed_messages = q.consumed_messages + n,
            consumed_bytes = q.consumed_bytes + bytes
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    RETURN pressure_mp.told('taken', NULL, contents, removed);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.items_of(entries pressure_mp.items[]) RETURNS bytea[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT array_agg(e.item) FROM unnest(entries) e);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.take(q pressure_mp.queues, c pressure_mp.caller, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    status text := pressure_mp.refusal(q, c, args, NULL, (args->>'limit')::bigint);
    r pressure_mp.reply;
BEGIN
    IF status IS NOT NULL THEN
        RETURN pressure_mp.said(status);
    END IF;
    r := pressure_mp.remove_some(q, c, (args->>'limit')::bigint, false);
    IF (r.undo[1]).token <> '' THEN
        PERFORM pressure_mp.keep(q.id, (r.undo[1]).token, c.lease * 12);
    END IF;
    RETURN r;
END $$;

-- Return items to their places that were taken for good, and that no caller has. A call that was
-- not made yet does nothing any more. With "if_open" nothing is undone when the queue was shut
-- down.
CREATE OR REPLACE FUNCTION pressure_mp.take_back(q pressure_mp.queues, a_lane text, a_number bigint,
    if_open boolean) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made pressure_mp.calls;
BEGIN
    SELECT * INTO made FROM pressure_mp.calls v WHERE v.lane = a_lane AND v.number = a_number;
    IF NOT FOUND THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status)
            VALUES (a_lane, a_number, q.id, 'taken_back');
        RETURN pressure_mp.said('done');
    END IF;
    IF made.undo IS NULL OR made.queue IS DISTINCT FROM q.id THEN
        RETURN pressure_mp.said('done');
    END IF;
    IF if_open AND q.closed AND NOT q.dropping THEN
        RETURN pressure_mp.told('taken', NULL, pressure_mp.items_of(made.undo), NULL);
    END IF;
    UPDATE pressure_mp.calls v SET undo = NULL, status = 'taken_back'
        WHERE v.lane = a_lane AND v.number = a_number;
    UPDATE pressure_mp.contents k SET until = NULL
        WHERE k.queue = q.id AND k.token = ANY (ARRAY(SELECT u.token FROM unnest(made.undo) u
            WHERE u.token <> ''));
    PERFORM pressure_mp.put_back(q, made.undo);
    RETURN pressure_mp.said('done');
END $$;
