-- The common put and the common get, with the fewest statements: of one item that is not large,
-- while no session waits, the first time that the call is made. In all other cases they do nothing,
-- and call_items makes the call.
--
-- "put_one" and "take_one" find the queue by its name. They return its slot, its id and its version
-- to the caller, which makes the next call by "put_next" or "take_next". These need not search for
-- the queue, nor read columns that never change while the queue has that id. Versions that are
-- older than "a_version" are not read.
--
-- The queue's own row notes the last calls of one lane that puts and of one that takes; "calls"
-- notes those of the others. A call that finds the queue by its name makes the row note its lane. A
-- version's upper 32 bits count the calls that were made again, or undone, each of which moves the
-- notes to "calls": a quick call that was sent before finds no queue of its version any more, and
-- so does nothing if it arrives after them. A call without a version is noted in "calls" too, where
-- its number would be found.

-- From now on quick calls that are under way do nothing, and those that were made are in "calls".
CREATE OR REPLACE FUNCTION pressure_mp.end_quick_calls(q pressure_mp.queues)
RETURNS pressure_mp.queues LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.id IS NULL THEN
        RETURN q;
    END IF;
    PERFORM pressure_mp.move_put_note(q);
    PERFORM pressure_mp.move_take_note(q);
    UPDATE pressure_mp.queues v
        SET version = ((v.version >> 32) + 1) << 32, put_lane = '', take_lane = '', taken = NULL
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id
        RETURNING * INTO q;
    RETURN q;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.move_put_note(q pressure_mp.queues) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.put_lane <> '' THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, info)
            VALUES (q.put_lane, q.put_number, q.id, 'added', '1') ON CONFLICT DO NOTHING;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.move_take_note(q pressure_mp.queues) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.take_lane <> '' AND (q.taken).queue IS NOT NULL THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, undo)
            VALUES (q.take_lane, q.take_number, q.id, 'taken', ARRAY[q.taken])
            ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- Find a queue by its name, if it has the discipline. Its row notes the puts, or the takes, of this
-- lane from now on.
CREATE OR REPLACE FUNCTION pressure_mp.give_note(a_slot bigint, a_prefix text, a_name text,
    a_discipline text, a_lane text, for_puts boolean) RETURNS pressure_mp.queues
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
BEGIN
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, 'items', a_name);
    IF q.discipline IS DISTINCT FROM a_discipline THEN
        RETURN NULL;
    ELSIF for_puts AND q.put_lane <> a_lane THEN
        PERFORM pressure_mp.move_put_note(q);
        UPDATE pressure_mp.queues v SET version = v.version + 1, put_lane = a_lane, put_number = 0
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    ELSIF NOT for_puts AND q.take_lane <> a_lane THEN
        PERFORM pressure_mp.move_take_note(q);
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, take_lane = a_lane, take_number = 0, taken = NULL
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    END IF;
    RETURN q;
END $$;

-- Put into a queue that is first in, first out. Returns its slot, its id and its version, eight bytes
-- each; NULL if it is not done.
CREATE OR REPLACE FUNCTION pressure_mp.put_one(a_prefix text, a_name text, a_client text,
    a_lane text, a_number bigint, a_item bytea) RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint;
    q pressure_mp.queues;
    now_at bigint;
BEGIN
    -- The settings: schema.py says what is done here.
    a_slot := pressure_mp.slot(a_prefix, 'items', a_name);
    PERFORM pg_advisory_xact_lock(a_slot);
    q := pressure_mp.give_note(a_slot, a_prefix, a_name, 'fifo', a_lane, true);
    IF q.id IS NULL THEN
        RETURN NULL;
    END IF;
    now_at := pressure_mp.put_next(a_slot, q.id, q.version, a_client, a_lane, a_number, a_item);
    IF now_at IS NOT NULL THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, info)
            VALUES (a_lane, a_number, q.id, 'added', '1');
    END IF;
    RETURN int8send(a_slot) || int8send(q.id) || int8send(now_at);
END $$;

-- Put into a known queue. Returns its version; NULL if it is not done. The start of each statement,
-- and of each operator in it, takes most of the time here: hence no variable of a row's type, and
-- no PERFORM.
CREATE OR REPLACE FUNCTION pressure_mp.put_next(a_slot bigint, a_queue bigint, a_version bigint,
    a_client text, a_lane text, a_number bigint, a_item bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_position bigint;
    noted pg_catalog.text;
    now_at bigint;
BEGIN
    -- The settings: schema.py says what is done here.
    IF pg_advisory_xact_lock(a_slot) IS NULL THEN  -- it never is
        RETURN NULL;
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1,
            length = v.length + 1, position = v.position + 1, producer = a_client,
            produced_messages = v.produced_messages + 1,
            produced_bytes = v.produced_bytes + octet_length(a_item),
            put_number = CASE v.put_lane WHEN a_lane THEN a_number ELSE v.put_number END
        WHERE v.slot = a_slot AND v.version BETWEEN a_version AND a_version | 4294967295
            AND v.id = a_queue AND NOT v.closed AND (v.bound <= 0 OR v.length < v.bound)
            AND NOT v.has_line
        RETURNING v.position, v.version, v.put_lane INTO a_position, now_at, noted;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO pressure_mp.items
        VALUES (a_queue, '', a_position, 0, 0, octet_length(a_item), '', NULL, a_item);
    IF noted <> a_lane THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, info)
            VALUES (a_lane, a_number, a_queue, 'added', '1');
    END IF;
    IF a_number % (CASE WHEN noted = a_lane THEN 64 ELSE 16 END) = 0 THEN
        PERFORM pressure_mp.forget_calls(a_lane, a_number);
    END IF;
    RETURN now_at;
END $$;

-- Take from a queue that is not fair. Returns its slot, its id and its version, eight bytes each, and
-- the item; NULL if it is not done.
CREATE OR REPLACE FUNCTION pressure_mp.take_one(a_prefix text, a_name text, a_discipline text,
    a_client text, a_lane text, a_number bigint) RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint;
    q pressure_mp.queues;
    taken pg_catalog.bytea;
BEGIN
    -- The settings: schema.py says what is done here.
    a_slot := pressure_mp.slot(a_prefix, 'items', a_name);
    PERFORM pg_advisory_xact_lock(a_slot);
    q := pressure_mp.give_note(a_slot, a_prefix, a_name, a_discipline, a_lane, false);
    IF q.id IS NULL OR q.discipline = 'fair' THEN
        RETURN NULL;
    END IF;
    taken := pressure_mp.take_next(a_slot, q.id, q.version, a_client, a_lane, a_number);
    IF taken IS NOT NULL THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, undo)
            SELECT a_lane, a_number, q.id, 'taken', ARRAY[v.taken] FROM pressure_mp.queues v
                WHERE v.slot = a_slot AND v.version >= q.version AND v.id = q.id
                    AND v.take_lane = a_lane AND v.take_number = a_number;  -- else the row has it
    END IF;
    RETURN int8send(a_slot) || int8send(q.id) || taken;
END $$;

-- Take from a known queue. Returns eight bytes that are its version, and the item; NULL if it is
-- not done.
CREATE OR REPLACE FUNCTION pressure_mp.take_next(a_slot bigint, a_queue bigint, a_version bigint,
    a_client text, a_lane text, a_number bigint) RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    there pg_catalog.tid;
    now_at bigint;
    a_discipline pg_catalog.text;
    from_rank pg_catalog.bytea;
    from_position bigint;
    from_ranks pg_catalog.bytea[];
    from_positions bigint[];
    noted pg_catalog.text;
    one pressure_mp.items;
    is_noted boolean;
BEGIN
    -- The settings: schema.py says what is done here.
    IF pg_advisory_xact_lock(a_slot) IS NULL THEN  -- it never is
        RETURN NULL;
    END IF;
    SELECT v.ctid, v.version, v.discipline, v.head_rank, v.head_position, v.ranks, v.positions,
            v.take_lane
        INTO there, now_at, a_discipline, from_rank, from_position, from_ranks, from_positions, noted
        FROM pressure_mp.queues v
        WHERE v.slot = a_slot AND v.version BETWEEN a_version AND a_version | 4294967295
            AND v.id = a_queue AND v.length > 0 AND NOT v.has_line;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF from_ranks IS NOT NULL THEN
        SELECT * INTO from_ranks, from_positions
            FROM pressure_mp.skip_ranks(a_queue, from_ranks, from_positions);
        from_rank := from_ranks[1];
        from_position := from_positions[1];
    ELSIF a_discipline = 'fifo' THEN  -- mostly the next position is that of the next item
        DELETE FROM pressure_mp.items i
            WHERE i.queue = a_queue AND i.rank = '' AND i.position = from_position + 1
                AND i.token = ''
            RETURNING i.* INTO one;
    END IF;
    IF one.queue IS NULL THEN
        DELETE FROM pressure_mp.items i
            WHERE i.ctid = (SELECT v.ctid FROM pressure_mp.items v
                    WHERE v.queue = a_queue AND (v.rank, v.position) > (from_rank, from_position)
                    ORDER BY v.rank, v.position LIMIT 1)
                AND i.token = ''
            RETURNING i.* INTO one;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF from_ranks IS NOT NULL THEN
        from_positions[1] := one.position;
    END IF;
    is_noted := noted = a_lane AND octet_length(one.item) <= 1000;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, length = v.length - 1, consumer = a_client,
            head_rank = one.rank, head_position = one.position,
            ranks = from_ranks, positions = from_positions,
            consumed_messages = v.consumed_messages + 1,
            consumed_bytes = v.consumed_bytes + one.size,
            take_number = CASE WHEN is_noted THEN a_number ELSE v.take_number END,
            taken = CASE WHEN is_noted THEN one ELSE v.taken END
        WHERE v.ctid = there;
    IF NOT is_noted THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, undo)
            VALUES (a_lane, a_number, a_queue, 'taken', ARRAY[one]);
    END IF;
    IF a_number % (CASE WHEN is_noted THEN 64 ELSE 16 END) = 0 THEN
        PERFORM pressure_mp.forget_calls(a_lane, a_number);
    END IF;
    RETURN int8send(now_at + 1) || one.item;
END $$;
