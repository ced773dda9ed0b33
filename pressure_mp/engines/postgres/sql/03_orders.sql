-- The orders of service: by priority, and fair by key.

-- Whether Python cannot compare the values of two sort keys: at their first difference, both have a
-- kind.
CREATE OR REPLACE FUNCTION pressure_mp.differ_in_kind(one bytea, other bytea) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    most integer := least(octet_length(one), octet_length(other));
    same integer := 0;  -- at least so many bytes are equal, and at most "most"
    middle integer;
BEGIN
    WHILE same < most LOOP
        middle := (same + most + 1) / 2;
        IF substr(one, same + 1, middle - same) = substr(other, same + 1, middle - same) THEN
            same := middle;
        ELSE
            most := middle - 1;
        END IF;
    END LOOP;
    RETURN same < least(octet_length(one), octet_length(other))
        AND get_byte(one, same) BETWEEN 1 AND 15 AND get_byte(other, same) BETWEEN 1 AND 15;
END $$;

-- Return the sort keys of queued items that are next to these keys: for each key, the last sort key before
-- it, and the first one that is not before it. If the queue's row has the sort keys of all items, return
-- all of them.
CREATE OR REPLACE FUNCTION pressure_mp.neighbours(q pressure_mp.queues, keys bytea[])
RETURNS bytea[] LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.ranks IS NOT NULL THEN
        RETURN ARRAY(SELECT u.r FROM unnest(q.ranks, q.positions) u (r, p)
            WHERE EXISTS (SELECT FROM pressure_mp.items i
                WHERE i.queue = q.id AND i.rank = u.r AND i.position > u.p));
    END IF;
    RETURN ARRAY(SELECT f.rank FROM (SELECT DISTINCT u.key FROM unnest(keys) u (key)) k,
        LATERAL ((SELECT i.rank FROM pressure_mp.items i
            WHERE i.queue = q.id AND i.rank < k.key
                AND (i.rank, i.position) > (q.head_rank, q.head_position)
            ORDER BY i.rank DESC, i.position DESC LIMIT 1)
        UNION ALL (SELECT i.rank FROM pressure_mp.items i
            WHERE i.queue = q.id AND (i.rank, i.position) > (greatest(k.key, q.head_rank),
                CASE WHEN k.key > q.head_rank THEN -9223372036854775808
                    ELSE q.head_position END)
            ORDER BY i.rank, i.position LIMIT 1)) f);
END $$;

-- Return the sort key of a queued item with which this one cannot be compared, if there is one: the
-- last of the items before it, else the first of the items behind it. A sort key that can be
-- compared with both neighbours can be compared with all.
CREATE OR REPLACE FUNCTION pressure_mp.find_not_comparable(q pressure_mp.queues, a_key bytea)
RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_key = ANY (q.ranks) AND EXISTS (SELECT FROM pressure_mp.items i
        WHERE i.queue = q.id AND i.rank = a_key
            AND i.position > q.positions[array_position(q.ranks, a_key)])
    THEN
        RETURN NULL;  -- an equal one is queued, so it can be compared with all
    END IF;
    RETURN (SELECT n.key FROM unnest(pressure_mp.neighbours(q, ARRAY[a_key])) n (key)
        WHERE pressure_mp.differ_in_kind(a_key, n.key)
        ORDER BY n.key > a_key, CASE WHEN n.key < a_key THEN n.key END DESC, n.key LIMIT 1);
END $$;

-- Whether these sort keys can be compared with each other and with the sort keys of the queued items.
-- They can if each can be compared with the next one in their order.
CREATE OR REPLACE FUNCTION pressure_mp.are_comparable(q pressure_mp.queues, keys bytea[])
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM (SELECT v.key, lag(v.key) OVER (ORDER BY v.key) AS before
            FROM (SELECT unnest(keys) UNION SELECT unnest(pressure_mp.neighbours(q, keys))) v (key)) p
        WHERE pressure_mp.differ_in_kind(p.before, p.key));
END $$;

-- Return how many of the first of these sort keys can be queued together, at least 1.
CREATE OR REPLACE FUNCTION pressure_mp.count_comparable(q pressure_mp.queues, keys bytea[])
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n integer := 1;
    too_many integer := cardinality(keys);
    middle integer;
BEGIN
    IF pressure_mp.are_comparable(q, keys) THEN
        RETURN too_many;
    END IF;
    WHILE too_many - n > 1 LOOP
        middle := (n + too_many) / 2;
        IF pressure_mp.are_comparable(q, keys[:middle]) THEN
            n := middle;
        ELSE
            too_many := middle;
        END IF;
    END LOOP;
    RETURN n;
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

-- Return the key in the sort key of a fair queue, which is a weight, a space, and the key.
CREATE OR REPLACE FUNCTION pressure_mp.tenant_of(sort_key bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(sort_key, position(decode('20', 'hex') IN sort_key) + 1)
$$;

CREATE OR REPLACE FUNCTION pressure_mp.weight_of(sort_key bytea) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT convert_from(substr(sort_key, 1, position(decode('20', 'hex') IN sort_key) - 1),
        'LATIN1')::bigint
$$;

-- Return the round in which an item of a fair queue is served, as a rank, and note that its key has
-- it. "woken" is 1 if there was a row of the key, and no item; otherwise 0.
CREATE OR REPLACE FUNCTION pressure_mp.enter_round(q pressure_mp.queues, sort_key bytea,
    OUT rank bytea, OUT woken bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_key bytea := pressure_mp.tenant_of(sort_key);
    t pressure_mp.tenants := pressure_mp.find_tenant(q.id, a_key);
    turn bigint := greatest(q.round + 1, t.round);
BEGIN
    woken := coalesce((t.queued = 0)::integer, 0);
    IF turn = t.round AND t.used >= pressure_mp.weight_of(sort_key) THEN
        turn := turn + 1;
    END IF;
    rank := int8send(turn);
    IF t.queue IS NULL THEN
        INSERT INTO pressure_mp.tenants VALUES (q.id, a_key, 0, turn, 1, 1);
    ELSE
        UPDATE pressure_mp.tenants v
            SET used = CASE WHEN turn = t.round THEN t.used + 1 ELSE 1 END,
                round = turn, queued = t.queued + 1, number = t.number + 1
            WHERE v.queue = q.id AND v.key = a_key AND v.number >= t.number;
    END IF;
END $$;

-- The same for several items, in order: the rounds of all, and the number of keys of which there was
-- a row, and no item.
CREATE OR REPLACE FUNCTION pressure_mp.enter_rounds(q pressure_mp.queues, sort_keys bytea[],
    OUT ranks bytea[], OUT woken bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t record;
    rows pressure_mp.tenants[] := '{}';
    places tid[] := '{}';
    turn bigint;
    used bigint;
BEGIN
    ranks := array_fill(NULL::bytea, ARRAY[cardinality(sort_keys)]);
    woken := 0;
    FOR t IN
        SELECT k.key, k.orders, k.weights, f.* FROM (
            SELECT s.key, array_agg(s.o ORDER BY s.o) AS orders,
                array_agg(s.weight ORDER BY s.o) AS weights
            FROM (SELECT u.o, pressure_mp.tenant_of(u.sort_key) AS key,
                    pressure_mp.weight_of(u.sort_key) AS weight
                FROM unnest(sort_keys) WITH ORDINALITY u (sort_key, o)) s
            GROUP BY s.key) k
        LEFT JOIN LATERAL (SELECT v.ctid AS at, v.round, v.used, v.queued
            FROM pressure_mp.tenants v WHERE v.queue = q.id AND v.key = k.key
            ORDER BY v.number DESC LIMIT 1) f ON true
    LOOP
        turn := greatest(q.round + 1, t.round);
        used := CASE WHEN turn = t.round THEN t.used ELSE 0 END;
        FOR i IN 1 .. cardinality(t.orders) LOOP
            IF used >= t.weights[i] THEN
                turn := turn + 1;
                used := 0;
            END IF;
            used := used + 1;
            ranks[t.orders[i]] := int8send(turn);
        END LOOP;
        places := array_append(places, t.at);
        rows := array_append(rows, ROW(q.id, t.key, 0, turn, used,
            cardinality(t.orders))::pressure_mp.tenants);
        woken := woken + coalesce((t.queued = 0)::integer, 0);
    END LOOP;
    UPDATE pressure_mp.tenants v
        SET used = u.used, round = u.round, queued = v.queued + u.queued, number = v.number + 1
        FROM unnest(places, rows) u (at, queue, key, number, round, used, queued)
        WHERE v.ctid = u.at;
    INSERT INTO pressure_mp.tenants SELECT u.queue, u.key, u.number, u.round, u.used, u.queued
        FROM unnest(places, rows) u (at, queue, key, number, round, used, queued)
        WHERE u.at IS NULL;
END $$;

-- Note that these items were removed from a fair queue. Returns how many keys have no item now.
CREATE OR REPLACE FUNCTION pressure_mp.leave_rounds(a_queue bigint, entries pressure_mp.items[])
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    idle bigint;
BEGIN
    IF cardinality(entries) = 1 THEN
        UPDATE pressure_mp.tenants v SET queued = v.queued - 1, number = v.number + 1
            WHERE v.ctid = (SELECT w.ctid FROM pressure_mp.tenants w WHERE w.queue = a_queue
                AND w.key = (entries[1]).tenant ORDER BY w.number DESC LIMIT 1)
            RETURNING (v.queued = 0)::integer INTO idle;
        RETURN idle;
    END IF;
    WITH changed AS (
        UPDATE pressure_mp.tenants v SET queued = v.queued - k.n, number = v.number + 1
            FROM pressure_mp.tenants_of(a_queue, entries) k WHERE v.ctid = k.at
            RETURNING v.queued
    )
    SELECT count(*) INTO idle FROM changed h WHERE h.queued = 0;
    RETURN idle;
END $$;

-- Note that these items were put back into a fair queue. Returns of how many keys there was a row, and
-- no item.
CREATE OR REPLACE FUNCTION pressure_mp.enter_again(a_queue bigint, entries pressure_mp.items[])
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    woken bigint;
BEGIN
    WITH changed AS (
        UPDATE pressure_mp.tenants v SET queued = v.queued + k.n, number = v.number + 1
            FROM pressure_mp.tenants_of(a_queue, entries) k WHERE v.ctid = k.at
            RETURNING v.queued, k.n
    )
    SELECT count(*) INTO woken FROM changed h WHERE h.queued = h.n;
    INSERT INTO pressure_mp.tenants SELECT a_queue, k.key, 0, k.round, 1, k.n
        FROM pressure_mp.tenants_of(a_queue, entries) k WHERE k.at IS NULL;
    RETURN woken;
END $$;

-- Return the keys of items, with the number of items and the last round of each, and where the key's
-- row is.
CREATE OR REPLACE FUNCTION pressure_mp.tenants_of(a_queue bigint, entries pressure_mp.items[])
RETURNS TABLE (key bytea, n bigint, round bigint, at tid) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY SELECT g.tenant, g.n, g.round, (SELECT v.ctid FROM pressure_mp.tenants v
            WHERE v.queue = a_queue AND v.key = g.tenant ORDER BY v.number DESC LIMIT 1)
        FROM (SELECT e.tenant, count(*) AS n,
                max(('x' || encode(e.rank, 'hex'))::bit(64)::bigint) AS round
            FROM unnest(entries) e GROUP BY e.tenant) g;
END $$;

-- Note in the queue's row, which is not yet updated, that items of these ranks were added at these
-- positions, perhaps before the head.
CREATE OR REPLACE FUNCTION pressure_mp.note_places(q pressure_mp.queues, a_ranks bytea[],
    a_positions bigint[]) RETURNS pressure_mp.queues LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    first_rank bytea := a_ranks[1];
    first_position bigint := a_positions[1];
    at integer;
BEGIN
    IF cardinality(a_ranks) > 1 THEN
        SELECT u.r, u.p INTO first_rank, first_position
            FROM unnest(a_ranks, a_positions) u (r, p) ORDER BY u.r, u.p LIMIT 1;
    END IF;
    IF (first_rank, first_position) <= (q.head_rank, q.head_position) THEN
        q.head_rank := first_rank;
        q.head_position := first_position - 1;
    END IF;
    IF first_rank = ANY (q.ranks) AND cardinality(a_ranks) = 1 THEN
        at := array_position(q.ranks, first_rank);
        q.positions[at] := least(q.positions[at], first_position - 1);
    ELSIF q.ranks IS NOT NULL THEN
        SELECT array_agg(g.r ORDER BY g.r), array_agg(g.p ORDER BY g.r) INTO q.ranks, q.positions
            FROM (SELECT u.r, min(u.p) AS p
                FROM (SELECT v.r, v.p FROM unnest(q.ranks, q.positions) v (r, p)
                    UNION ALL SELECT v.r, v.p - 1 FROM unnest(a_ranks, a_positions) v (r, p)) u
                GROUP BY u.r) g
            HAVING count(*) <= 16 AND max(octet_length(g.r)) <= 100;
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
RETURNS TABLE (there pg_catalog.tid, token text, bytes integer) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint;
BEGIN
    IF q.ranks IS NULL THEN
        RETURN QUERY SELECT i.ctid, i.token, octet_length(i.item)
            FROM pressure_mp.items i WHERE i.queue = q.id
                AND (i.rank, i.position) > (q.head_rank, q.head_position)
            ORDER BY i.rank, i.position LIMIT a_limit;
        RETURN;
    END IF;
    FOR at IN 1 .. cardinality(q.ranks) LOOP
        RETURN QUERY SELECT i.ctid, i.token, octet_length(i.item)
            FROM pressure_mp.items i
            WHERE i.queue = q.id AND i.rank = q.ranks[at] AND i.position > q.positions[at]
            ORDER BY i.position LIMIT a_limit;
        GET DIAGNOSTICS n = ROW_COUNT;
        a_limit := a_limit - n;
        EXIT WHEN a_limit <= 0;
    END LOOP;
END $$;
