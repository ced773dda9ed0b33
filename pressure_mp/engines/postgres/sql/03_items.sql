-- Functions that put and take items.

-- Note that an item was added, perhaps before the head.
CREATE OR REPLACE FUNCTION pressure_mp.lower_head(q pressure_mp.queues, a_rank bytea,
    a_position bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF (a_rank, a_position) <= (q.head_rank, q.head_position) THEN
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, head_rank = a_rank, head_position = a_position - 1
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.put(q pressure_mp.queues, c pressure_mp.caller, args jsonb,
    a_items bytea[], a_keys bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    room bigint := cardinality(a_items);
    added bigint := 0;
    bytes bigint := 0;
    large boolean;
    one record;
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
        room := least(room, greatest(q.bound - q.length, 0));
    END IF;
    IF room = 0 OR (args ? 'waits' AND NOT pressure_mp.is_next(c, 'p')) THEN
        RETURN pressure_mp.said('no_space', to_jsonb(q.length));
    END IF;
    IF q.discipline IN ('fifo', 'lifo') THEN
        added := room;
        IF q.discipline = 'lifo' AND -q.position - room <= q.head_position THEN
            q.head_position := -q.position - room - 1;
        END IF;
        IF room = 1 THEN
            large := substr(a_items[1], 1, 4) = decode('fa6d7031', 'hex');
        ELSE
            large := EXISTS (SELECT FROM unnest(a_items[1:room]) item
                WHERE substr(item, 1, 4) = decode('fa6d7031', 'hex'));
        END IF;
        IF room = 1 AND NOT large THEN
            bytes := octet_length(a_items[1]);
            INSERT INTO pressure_mp.items VALUES (q.id, '',
                CASE q.discipline WHEN 'fifo' THEN q.position + 1 ELSE -q.position - 1 END,
                0, 0, bytes, '', NULL, a_items[1]);
        ELSE
            WITH new AS (
                INSERT INTO pressure_mp.items
                SELECT q.id, '',
                    CASE q.discipline WHEN 'fifo' THEN q.position + o ELSE -q.position - o END,
                    0, 0,
                    CASE WHEN large THEN (pressure_mp.weigh(q.id, item)).size
                        ELSE octet_length(item) END,
                    CASE WHEN large THEN (pressure_mp.weigh(q.id, item)).token ELSE '' END,
                    NULL, item
                FROM unnest(a_items[1:room]) WITH ORDINALITY u (item, o)
                RETURNING size
            )
            SELECT sum(size) INTO bytes FROM new;
        END IF;
    ELSE
        IF q.discipline = 'priority' AND q.length = 0 THEN
            q.ranks := '{}';
            q.positions := '{}';
        END IF;
        FOR at IN 1 .. room LOOP
            SELECT * INTO one
                FROM pressure_mp.add_in_order(q, a_items[at], a_keys[at], q.position + at);
            IF one.other IS NOT NULL THEN
                IF added = 0 THEN
                    RETURN pressure_mp.told('not_comparable', NULL, ARRAY[one.other], NULL);
                END IF;
                EXIT;
            END IF;
            added := added + 1;
            bytes := bytes + one.size;
            IF one.was_idle THEN
                q.idle_keys := q.idle_keys - 1;
            END IF;
            CONTINUE WHEN q.discipline <> 'priority';
            q := pressure_mp.note_rank(q, a_keys[at], q.position + at);
            IF (a_keys[at], q.position + at) <= (q.head_rank, q.head_position) THEN
                q.head_rank := a_keys[at];
                q.head_position := q.position + at - 1;
            END IF;
        END LOOP;
    END IF;
    IF args ? 'has_content' OR large IS DISTINCT FROM false THEN
        UPDATE pressure_mp.contents k SET until = NULL
            WHERE k.queue = q.id AND k.token IN (SELECT pressure_mp.token_of(item)
                FROM unnest(a_items[1:added]) item
                WHERE substr(item, 1, 4) = decode('fa6d7031', 'hex'));
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
    -- Callers are served in the order in which they came. A caller without a place is served too
    -- when there are items for it and for all sessions in line.
    IF args ? 'waits' AND NOT pressure_mp.is_next(c, 'c') AND (pressure_mp.has_place(c, 'c')
        OR q.length < a_limit + pressure_mp.count_others(c, 'c'))
    THEN
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
-- content is in chunks is taken alone.
CREATE OR REPLACE FUNCTION pressure_mp.remove_some(q pressure_mp.queues, c pressure_mp.caller,
    a_limit bigint) RETURNS pressure_mp.items[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    removed pressure_mp.items[];
    one pressure_mp.items;
    bytes bigint;
    n bigint := 1;
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
        removed := ARRAY[one];
        bytes := one.size;
    ELSE
        WITH next AS (
            SELECT v.there, row_number() OVER w AS o, sum(v.bytes) OVER w AS bytes,
                count(nullif(v.token, '')) OVER w AS contents
            FROM pressure_mp.next_items(q, least(a_limit, 1000)) v
            WINDOW w AS (ORDER BY v.rank, v.position)
        ), gone AS (
            DELETE FROM pressure_mp.items i USING next n
                WHERE i.ctid = n.there AND (n.o = 1 OR (n.bytes <= 1000000 AND n.contents = 0))
                RETURNING i
        )
        SELECT array_agg(g.i ORDER BY (g.i).rank, (g.i).position), sum((g.i).size), count(*)
            INTO removed, bytes, n FROM gone g;
        one := removed[n];
    END IF;
    IF q.discipline = 'fair' THEN
        turn := ('x' || encode(one.rank, 'hex'))::bit(64)::bigint;
        q.idle_keys := q.idle_keys + (
            SELECT count(*) FILTER (WHERE pressure_mp.count_tenant(q.id, u.tenant, -u.gone))
            FROM (SELECT r.tenant, count(*) AS gone FROM unnest(removed) r GROUP BY r.tenant) u);
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
            head_rank = one.rank, head_position = one.position,
            ranks = q.ranks, positions = q.positions, idle_keys = q.idle_keys,
            consumed_messages = q.consumed_messages + n,
            consumed_bytes = q.consumed_bytes + bytes
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    RETURN removed;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.items_of(entries pressure_mp.items[]) RETURNS bytea[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT array_agg(e.item ORDER BY e.o) FROM unnest(entries) WITH ORDINALITY
        e (queue, rank, position, number, deliveries, size, token, tenant, item, o));
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.take(q pressure_mp.queues, c pressure_mp.caller, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    status text := pressure_mp.refusal(q, c, args, NULL, (args->>'limit')::bigint);
    taken pressure_mp.items[];
BEGIN
    IF status IS NOT NULL THEN
        RETURN pressure_mp.said(status);
    END IF;
    taken := pressure_mp.remove_some(q, c, (args->>'limit')::bigint);
    IF (taken[1]).token <> '' THEN
        PERFORM pressure_mp.keep(q.id, (taken[1]).token, c.lease * 12);
    END IF;
    IF cardinality(taken) = 1 THEN
        RETURN pressure_mp.told('taken', NULL, ARRAY[(taken[1]).item], taken);
    END IF;
    RETURN pressure_mp.told('taken', NULL, pressure_mp.items_of(taken), taken);
END $$;

-- Return items to their places that were taken for good, and that no caller has. A call that was
-- not made yet does nothing any more. With "if_open" nothing is undone when the queue was shut
-- down.
CREATE OR REPLACE FUNCTION pressure_mp.take_back(q pressure_mp.queues, a_lane text, a_number bigint,
    if_open boolean) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made pressure_mp.calls;
    entry pressure_mp.items;
    t pressure_mp.tenants;
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
    FOREACH entry IN ARRAY made.undo LOOP
        IF entry.token <> '' THEN
            UPDATE pressure_mp.contents k SET until = NULL
                WHERE k.queue = q.id AND k.token = entry.token;
        END IF;
        IF entry.tenant IS NOT NULL AND NOT q.dropping THEN
            t := pressure_mp.find_tenant(q.id, entry.tenant);
            IF t.queue IS NULL THEN
                INSERT INTO pressure_mp.tenants VALUES (q.id, entry.tenant, 0,
                    ('x' || encode(entry.rank, 'hex'))::bit(64)::bigint, 1, 1);
            ELSE
                q.idle_keys := q.idle_keys - (t.queued = 0)::integer;
                PERFORM pressure_mp.count_tenant(q.id, entry.tenant, 1);
            END IF;
        END IF;
    END LOOP;
    PERFORM pressure_mp.put_back(q, made.undo);
    RETURN pressure_mp.said('done');
END $$;
