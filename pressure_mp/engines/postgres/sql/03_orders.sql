-- The orders of service: by priority, and fair by key.

-- Whether Python cannot compare the values of two sort keys: at their first difference, both have a
-- kind.
CREATE OR REPLACE FUNCTION pressure_mp.differ_in_kind(one bytea, other bytea) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    mine integer;
    its integer;
BEGIN
    FOR at IN 0 .. least(octet_length(one), octet_length(other)) - 1 LOOP
        mine := get_byte(one, at);
        its := get_byte(other, at);
        IF mine <> its THEN
            RETURN mine BETWEEN 1 AND 15 AND its BETWEEN 1 AND 15;
        END IF;
    END LOOP;
    RETURN false;
END $$;

-- Return the sort key of a queued item with which this one cannot be compared, if there is one: the
-- last of the items before it, else the first of the items behind it. A sort key that can be
-- compared with both neighbours can be compared with all.
CREATE OR REPLACE FUNCTION pressure_mp.find_not_comparable(q pressure_mp.queues, a_key bytea)
RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    other bytea;
    from_rank bytea := q.head_rank;
    from_position bigint := q.head_position;
BEGIN
    IF q.ranks IS NOT NULL THEN
        IF a_key = ANY (q.ranks) AND EXISTS (SELECT FROM pressure_mp.items i
            WHERE i.queue = q.id AND i.rank = a_key
                AND i.position > q.positions[array_position(q.ranks, a_key)])
        THEN
            RETURN NULL;  -- an equal one is queued, so it can be compared with all
        END IF;
        RETURN (SELECT u.r FROM unnest(q.ranks, q.positions) u (r, p)
            WHERE u.r <> a_key AND pressure_mp.differ_in_kind(a_key, u.r)
                AND EXISTS (SELECT FROM pressure_mp.items i
                    WHERE i.queue = q.id AND i.rank = u.r AND i.position > u.p)
            ORDER BY u.r > a_key, CASE WHEN u.r < a_key THEN u.r END DESC, u.r LIMIT 1);
    END IF;
    IF q.head_rank < a_key THEN
        SELECT i.rank INTO other FROM pressure_mp.items i
            WHERE i.queue = q.id AND i.rank < a_key
                AND (i.rank, i.position) > (q.head_rank, q.head_position)
            ORDER BY i.rank DESC, i.position DESC LIMIT 1;
        IF FOUND AND pressure_mp.differ_in_kind(a_key, other) THEN
            RETURN other;
        END IF;
        from_rank := a_key;
        from_position := -9223372036854775808;
    END IF;
    SELECT i.rank INTO other FROM pressure_mp.items i
        WHERE i.queue = q.id AND (i.rank, i.position) > (from_rank, from_position)
        ORDER BY i.rank, i.position LIMIT 1;
    IF FOUND AND pressure_mp.differ_in_kind(a_key, other) THEN
        RETURN other;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.find_tenant(a_queue bigint, a_key bytea)
RETURNS pressure_mp.tenants LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tenants;
BEGIN
    SELECT * INTO t FROM pressure_mp.tenants v WHERE v.queue = a_queue AND v.key = a_key
        ORDER BY v.number DESC LIMIT 1;
    RETURN t;
END $$;

-- Return the round in which an item of a fair queue is served, and note that its key has it. Also
-- returns whether the key had a row and no items.
CREATE OR REPLACE FUNCTION pressure_mp.enter_round(q pressure_mp.queues, a_key bytea,
    a_weight bigint, OUT turn bigint, OUT was_idle boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tenants := pressure_mp.find_tenant(q.id, a_key);
BEGIN
    was_idle := coalesce(t.queued = 0, false);
    IF t.queue IS NULL THEN
        t := ROW(q.id, a_key, 0, 0, 0, 0);
        INSERT INTO pressure_mp.tenants SELECT (t).*;
    END IF;
    turn := greatest(q.round + 1, t.round);
    IF turn = t.round AND t.used >= a_weight THEN
        turn := turn + 1;
    END IF;
    UPDATE pressure_mp.tenants v
        SET used = CASE WHEN turn = t.round THEN t.used + 1 ELSE 1 END,
            round = turn, queued = t.queued + 1, number = t.number + 1
        WHERE v.queue = q.id AND v.key = a_key AND v.number >= t.number;
END $$;

-- Note that so many items of a key were added, or removed. Returns whether it has none now.
CREATE OR REPLACE FUNCTION pressure_mp.count_tenant(a_queue bigint, a_key bytea, more bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tenants := pressure_mp.find_tenant(a_queue, a_key);
BEGIN
    UPDATE pressure_mp.tenants v SET queued = t.queued + more, number = t.number + 1
        WHERE v.queue = a_queue AND v.key = a_key AND v.number >= t.number;
    RETURN t.queued + more = 0;
END $$;

-- Add one item to a queue with sort keys. Returns its size, and whether its key was idle; or in
-- "other" the sort key with which it cannot be compared.
CREATE OR REPLACE FUNCTION pressure_mp.add_in_order(q pressure_mp.queues, a_item bytea, a_key bytea,
    a_position bigint, OUT size bigint, OUT was_idle boolean, OUT other bytea)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    token text;
    tenant bytea;
    rank bytea := a_key;
    gap integer;
    turn bigint;
BEGIN
    IF q.discipline = 'priority' THEN
        other := pressure_mp.find_not_comparable(q, a_key);
        IF other IS NOT NULL THEN
            RETURN;
        END IF;
    ELSE
        gap := position(decode('20', 'hex') IN a_key);
        tenant := substr(a_key, gap + 1);
        SELECT * INTO turn, was_idle FROM pressure_mp.enter_round(q, tenant,
            convert_from(substr(a_key, 1, gap - 1), 'LATIN1')::bigint);
        rank := int8send(turn);
    END IF;
    SELECT w.size, w.token INTO size, token FROM pressure_mp.weigh(q.id, a_item) w;
    INSERT INTO pressure_mp.items
        VALUES (q.id, rank, a_position, 0, 0, size, token, tenant, a_item);
END $$;

-- Return the ranks for the queue's row after an item of that rank was added.
CREATE OR REPLACE FUNCTION pressure_mp.note_rank(q pressure_mp.queues, a_rank bytea,
    a_position bigint) RETURNS pressure_mp.queues LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    at integer := array_position(q.ranks, a_rank);
BEGIN
    IF at IS NOT NULL THEN
        q.positions[at] := least(q.positions[at], a_position - 1);
    ELSIF cardinality(q.ranks) >= 16 OR octet_length(a_rank) > 100 THEN
        q.ranks := NULL;
        q.positions := NULL;
    ELSIF q.ranks IS NOT NULL THEN
        at := (SELECT count(*) FROM unnest(q.ranks) r WHERE r < a_rank);
        q.ranks := array_append(q.ranks[:at], a_rank) || q.ranks[at + 1:];
        q.positions := array_append(q.positions[:at], a_position - 1) || q.positions[at + 1:];
    END IF;
    RETURN q;
END $$;

-- Return these ranks, without the first ones that have no item any more; the last rank stays.
CREATE OR REPLACE FUNCTION pressure_mp.skip_ranks(a_queue bigint, INOUT ranks bytea[],
    INOUT positions bigint[]) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WHILE cardinality(ranks) > 1 LOOP
        PERFORM FROM pressure_mp.items i
            WHERE i.queue = a_queue AND i.rank = ranks[1] AND i.position > positions[1] LIMIT 1;
        EXIT WHEN FOUND;
        ranks := ranks[2:];
        positions := positions[2:];
    END LOOP;
END $$;

-- Return the next items, up to so many, in order.
CREATE OR REPLACE FUNCTION pressure_mp.next_items(q pressure_mp.queues, a_limit bigint)
RETURNS TABLE (there pg_catalog.tid, rank bytea, "position" bigint, token text, bytes integer)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint;
BEGIN
    IF q.ranks IS NULL THEN
        RETURN QUERY SELECT i.ctid, i.rank, i.position, i.token, octet_length(i.item)
            FROM pressure_mp.items i WHERE i.queue = q.id
                AND (i.rank, i.position) > (q.head_rank, q.head_position)
            ORDER BY i.rank, i.position LIMIT a_limit;
        RETURN;
    END IF;
    FOR at IN 1 .. cardinality(q.ranks) LOOP
        RETURN QUERY SELECT i.ctid, i.rank, i.position, i.token, octet_length(i.item)
            FROM pressure_mp.items i
            WHERE i.queue = q.id AND i.rank = q.ranks[at] AND i.position > q.positions[at]
            ORDER BY i.position LIMIT a_limit;
        GET DIAGNOSTICS n = ROW_COUNT;
        a_limit := a_limit - n;
        EXIT WHEN a_limit <= 0;
    END LOOP;
END $$;
