-- The common put and the common get, with the fewest statements: of one item that is not large, while
-- nobody waits, the first time that the call is made. Where anything else is to be done they do
-- nothing, and the call is made by call_items.
--
-- "a_version" is one that the queue had lately, as an earlier call told; 0 if the caller knows none. Older
-- ones are not looked at.
--
-- That a call was made is noted in the queue's own row, for one lane that puts and one that takes, and in
-- "calls" for the others. It becomes the note of a lane by a call that knows no version. A version's upper
-- 32 bits count the calls that were made again, or undone, each of which moves the notes to "calls": a quick
-- call that was sent before finds no queue of its version any more, and so does nothing if it arrives after
-- them. One that knows no version is noted in "calls" too: there its number would be found.

-- The latest version of a queue.
CREATE OR REPLACE FUNCTION pressure_mp.version_of(a_slot bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT v.version FROM pressure_mp.queues v WHERE v.slot = a_slot
        ORDER BY v.version DESC LIMIT 1);
END $$;

-- Quick calls that are under way will do nothing; those that were made are in "calls".
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

-- The note of puts, or of takes, is that of a lane from now on.
CREATE OR REPLACE FUNCTION pressure_mp.give_note(a_slot bigint, a_prefix text, a_name text, a_lane text,
    a_number bigint, for_puts boolean) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
BEGIN
    SELECT * INTO q FROM pressure_mp.queues v
        WHERE v.slot = a_slot
            AND v.prefix = a_prefix AND v.kind = 'items' AND v.name = a_name
        ORDER BY v.version DESC LIMIT 1;
    IF for_puts AND q.put_lane <> a_lane THEN
        PERFORM pressure_mp.move_put_note(q);
        UPDATE pressure_mp.queues v SET version = v.version + 1, put_lane = a_lane, put_number = 0
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    ELSIF NOT for_puts AND q.take_lane <> a_lane THEN
        PERFORM pressure_mp.move_take_note(q);
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, take_lane = a_lane, take_number = 0, taken = NULL
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
    END IF;
    DELETE FROM pressure_mp.calls v WHERE v.lane = a_lane AND v.number < a_number - 8;
    RETURN q.version;
END $$;

-- Put into a queue that is first in, first out. Returns its version; NULL if it is not done.
CREATE OR REPLACE FUNCTION pressure_mp.put_one(a_prefix text, a_name text, a_client text,
    a_lane text, a_number bigint, a_version bigint, a_item bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint;
    known bigint := a_version;
    q pressure_mp.queues;
BEGIN
    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>)
        'pg_catalog, pg_temp'::pg_catalog.text
    THEN
        PERFORM pressure_mp.set_up();  -- before anything is named without its schema
    END IF;
    a_slot := pressure_mp.slot(a_prefix, 'items', a_name);
    PERFORM pg_advisory_xact_lock(a_slot);
    IF known = 0 THEN
        known := pressure_mp.give_note(a_slot, a_prefix, a_name, a_lane, a_number, true);
    END IF;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1,
            length = v.length + 1, position = v.position + 1, producer = a_client,
            produced_messages = v.produced_messages + 1,
            produced_bytes = v.produced_bytes + octet_length(a_item),
            put_number = CASE v.put_lane WHEN a_lane THEN a_number ELSE v.put_number END
        WHERE v.slot = a_slot AND v.version BETWEEN known AND known | 4294967295
            AND v.prefix = a_prefix AND v.kind = 'items' AND v.name = a_name
            AND v.discipline = 'fifo' AND NOT v.closed AND (v.bound <= 0 OR v.length < v.bound)
            AND substr(a_item, 1, 4) <> '\xfa6d7031'::bytea AND NOT v.has_line
        RETURNING v.id, v.position, v.version, v.put_lane
            INTO q.id, q.position, q.version, q.put_lane;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO pressure_mp.items
        VALUES (q.id, '', q.position, 0, 0, octet_length(a_item), '', NULL, a_item);
    IF a_version = 0 OR q.put_lane <> a_lane THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, info)
            VALUES (a_lane, a_number, q.id, 'added', '1');
        IF a_number % 8 = 0 THEN
            PERFORM pressure_mp.forget_calls(a_lane, a_number);
        END IF;
    END IF;
    RETURN q.version;
END $$;

-- Take from a queue that is not fair. Returns eight bytes that are its version, and the item; NULL if
-- it is not done.
CREATE OR REPLACE FUNCTION pressure_mp.take_one(a_prefix text, a_name text, a_client text,
    a_lane text, a_number bigint, a_version bigint) RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint;
    known bigint := a_version;
    there pg_catalog.tid;
    q pressure_mp.queues;
    one pressure_mp.items;
    is_noted boolean;
BEGIN
    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>)
        'pg_catalog, pg_temp'::pg_catalog.text
    THEN
        PERFORM pressure_mp.set_up();  -- before anything is named without its schema
    END IF;
    a_slot := pressure_mp.slot(a_prefix, 'items', a_name);
    PERFORM pg_advisory_xact_lock(a_slot);
    IF known = 0 THEN
        known := pressure_mp.give_note(a_slot, a_prefix, a_name, a_lane, a_number, false);
    END IF;
    SELECT v.ctid, v.id, v.version, v.discipline, v.head_rank, v.head_position, v.take_lane
        INTO there, q.id, q.version, q.discipline, q.head_rank, q.head_position, q.take_lane
        FROM pressure_mp.queues v
        WHERE v.slot = a_slot AND v.version BETWEEN known AND known | 4294967295
            AND v.prefix = a_prefix AND v.kind = 'items' AND v.name = a_name
            AND v.length > 0 AND v.discipline <> 'fair' AND NOT v.has_line;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF q.discipline = 'fifo' THEN  -- mostly the next position is that of the next item
        DELETE FROM pressure_mp.items i
            WHERE i.queue = q.id AND i.rank = '' AND i.position = q.head_position + 1
                AND i.token = ''
            RETURNING i.* INTO one;
    END IF;
    IF one.queue IS NULL THEN
        DELETE FROM pressure_mp.items i
            WHERE i.ctid = (SELECT v.ctid FROM pressure_mp.items v
                    WHERE v.queue = q.id
                        AND (v.rank, v.position) > (q.head_rank, q.head_position)
                    ORDER BY v.rank, v.position LIMIT 1)
                AND i.token = ''
            RETURNING i.* INTO one;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    is_noted := a_version > 0 AND q.take_lane = a_lane AND octet_length(one.item) <= 1000;
    UPDATE pressure_mp.queues v
        SET version = v.version + 1, length = v.length - 1, consumer = a_client,
            head_rank = one.rank, head_position = one.position,
            consumed_messages = v.consumed_messages + 1,
            consumed_bytes = v.consumed_bytes + one.size,
            take_number = CASE WHEN is_noted THEN a_number ELSE v.take_number END,
            taken = CASE WHEN is_noted THEN one ELSE v.taken END
        WHERE v.ctid = there;
    IF NOT is_noted THEN
        INSERT INTO pressure_mp.calls (lane, number, queue, status, undo)
            VALUES (a_lane, a_number, q.id, 'taken', ARRAY[one]);
        IF a_number % 8 = 0 THEN
            PERFORM pressure_mp.forget_calls(a_lane, a_number);
        END IF;
    END IF;
    RETURN int8send(q.version + 1) || one.item;
END $$;
