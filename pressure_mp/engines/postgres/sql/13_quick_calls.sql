-- The common put and the common get, with the fewest statements: of one item that is not large, while
-- nobody waits, the first time that the call is made. Where anything else is to be done they do
-- nothing, and the call is made by call_items.

-- Put into a queue that is first in, first out. Returns whether it is done.
CREATE OR REPLACE FUNCTION pressure_mp.put_one(a_prefix text, a_name text, a_client text,
    a_lane text, a_number bigint, a_item bytea) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint := pressure_mp.slot(a_prefix, 'items', a_name);
    a_queue bigint;
    a_position bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(a_slot);
    UPDATE pressure_mp.queues v
        SET version = v.version + 1,
            length = v.length + 1, position = v.position + 1, producer = a_client,
            produced_messages = v.produced_messages + 1,
            produced_bytes = v.produced_bytes + octet_length(a_item)
        WHERE v.ctid = (SELECT w.ctid FROM pressure_mp.queues w
                WHERE w.slot = a_slot
                    AND w.prefix = a_prefix AND w.kind = 'items' AND w.name = a_name
                ORDER BY w.version DESC LIMIT 1)
            AND v.discipline = 'fifo' AND NOT v.closed AND (v.bound <= 0 OR v.length < v.bound)
            AND substr(a_item, 1, 4) <> '\xfa6d7031'::bytea
            AND NOT EXISTS (SELECT FROM pressure_mp.waiting w WHERE w.slot = a_slot
                AND w.line IN ('p', 'c') AND w.place > v.passed)
        RETURNING v.id, v.position INTO a_queue, a_position;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO pressure_mp.items
        VALUES (a_queue, '', a_position, 0, 0, octet_length(a_item), '', NULL, a_item);
    INSERT INTO pressure_mp.calls (lane, number, queue, status, info)
        VALUES (a_lane, a_number, a_queue, 'added', '1');
    IF a_number % 8 = 0 THEN
        PERFORM pressure_mp.forget_calls(a_lane, a_number);
    END IF;
    RETURN true;
END $$;

-- Take from a queue that is not fair. Returns the item; NULL if it is not done.
CREATE OR REPLACE FUNCTION pressure_mp.take_one(a_prefix text, a_name text, a_client text,
    a_lane text, a_number bigint) RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint := pressure_mp.slot(a_prefix, 'items', a_name);
    there tid;
    a_queue bigint;
    a_rank bytea;
    a_position bigint;
    one pressure_mp.items;
BEGIN
    PERFORM pg_advisory_xact_lock(a_slot);
    SELECT q.there, q.id, q.head_rank, q.head_position INTO there, a_queue, a_rank, a_position
        FROM (SELECT v.ctid AS there, v.* FROM pressure_mp.queues v
            WHERE v.slot = a_slot
                AND v.prefix = a_prefix AND v.kind = 'items' AND v.name = a_name
            ORDER BY v.version DESC LIMIT 1) q
        WHERE q.length > 0 AND q.discipline <> 'fair'
            AND NOT EXISTS (SELECT FROM pressure_mp.waiting w WHERE w.slot = a_slot
                AND w.line IN ('p', 'c') AND w.place > q.passed);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM pressure_mp.items i
        WHERE i.ctid = (SELECT v.ctid FROM pressure_mp.items v
                WHERE v.queue = a_queue AND (v.rank, v.position) > (a_rank, a_position)
                ORDER BY v.rank, v.position LIMIT 1)
            AND i.token = ''
        RETURNING i.* INTO one;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, length = v.length - 1, consumer = a_client,
            head_rank = one.rank, head_position = one.position,
            consumed_messages = v.consumed_messages + 1,
            consumed_bytes = v.consumed_bytes + one.size
        WHERE v.ctid = there;
    INSERT INTO pressure_mp.calls (lane, number, queue, status, undo)
        VALUES (a_lane, a_number, a_queue, 'taken', ARRAY[one]);
    IF a_number % 8 = 0 THEN
        PERFORM pressure_mp.forget_calls(a_lane, a_number);
    END IF;
    RETURN one.item;
END $$;
