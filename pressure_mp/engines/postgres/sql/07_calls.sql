-- One function for all requests to queues: each is done atomically, and once.

CREATE OR REPLACE FUNCTION pressure_mp.find_call(a_lane text, a_number bigint)
RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made pressure_mp.calls;
BEGIN
    SELECT * INTO made FROM pressure_mp.calls v WHERE v.lane = a_lane AND v.number = a_number;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN ROW(made.status, made.info,
        coalesce(made.items, pressure_mp.items_of(made.undo)), NULL)::pressure_mp.reply;
END $$;

-- Remove the calls of a lane that no client will repeat. A call may be undone while its session
-- makes others. Each sixteenth call does this, whether it is kept or not, and each sixty-fourth of
-- the calls that the queue's own row notes; calls that were removed long ago are not read again.
CREATE OR REPLACE FUNCTION pressure_mp.forget_calls(a_lane text, a_number bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pressure_mp.calls v
        WHERE v.lane = a_lane AND v.number >= a_number - 192 AND v.number < a_number - 8;
END $$;

-- Keep a reply. A call of that number that was made before is an error: then nothing is done.
CREATE OR REPLACE FUNCTION pressure_mp.keep_call(a_lane text, a_number bigint, a_queue bigint,
    r pressure_mp.reply) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO pressure_mp.calls VALUES (a_lane, a_number, a_queue, r.status, r.info,
        CASE WHEN r.undo IS NULL THEN r.items END, r.undo, clock_timestamp());
    IF a_number % 16 = 0 THEN
        PERFORM pressure_mp.forget_calls(a_lane, a_number);
    END IF;
END $$;

-- Return how many standbys confirm each commit, from synchronous_standby_names.
CREATE OR REPLACE FUNCTION pressure_mp.count_synchronous(names text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN trim(names) = '' THEN 0 ELSE coalesce(
        substring(lower(trim(names))
            FROM '^(?:(?:first|any)[[:space:]]+)?([0-9]+)[[:space:]]*[(]')::integer, 1) END
$$;

-- Set what confirms the commit of this call, whatever the server waits for otherwise: so many
-- standbys; with 0 its disk, and its synchronous standbys, if it has any; with -1 nothing.
CREATE OR REPLACE FUNCTION pressure_mp.be_durable(a_standbys integer) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found integer;
BEGIN
    IF a_standbys < 0 THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN;
    ELSIF a_standbys = 0 AND current_setting('fsync') = 'off' THEN
        RAISE 'the server has fsync=off: its disk confirms nothing' USING ERRCODE = '55000';
    ELSIF a_standbys > 0 THEN
        found := pressure_mp.count_synchronous(current_setting('synchronous_standby_names'));
        IF found < a_standbys THEN
            RAISE 'synchronous_standby_names has % standbys confirm a commit, not %', found,
                a_standbys USING ERRCODE = '55000';
        END IF;
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local')
        OR (a_standbys > 0 AND current_setting('synchronous_commit') = 'remote_write')
    THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- Wait for the lock of a queue, which other calls have. If the caller "flushes", the commit does not
-- wait for the disk: so the others wait for the lock only, and the disk is waited for once for many
-- of them, by the function "flush". Returns whether the caller is to call that.
CREATE OR REPLACE FUNCTION pressure_mp.wait_for_lock(a_slot bigint, flushes boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    flushes := flushes AND current_setting('synchronous_commit') <> 'off';
    IF flushes THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM pg_advisory_xact_lock(a_slot);
    RETURN flushes;
END $$;

-- Let the commit of this call wait for the disk, and so for all commits before it: that of the call of
-- that number is one of these. Returns whether there was such a call: a crash of the server meanwhile
-- may have undone it.
CREATE OR REPLACE FUNCTION pressure_mp.flush(a_lane text, a_number bigint, a_standbys integer)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_standbys IS NOT NULL THEN
        PERFORM pressure_mp.be_durable(a_standbys);
    END IF;
    PERFORM FROM pressure_mp.calls v WHERE v.lane = a_lane AND v.number = a_number;
    IF FOUND THEN
        PERFORM pg_logical_emit_message(true, 'pressure_mp', '');  -- something to commit
    END IF;
    RETURN FOUND;
END $$;

-- Return the reply to a call that was made before; NULL if it is to be made, perhaps anew.
CREATE OR REPLACE FUNCTION pressure_mp.repeat_call(q pressure_mp.queues, a_kind text, a_lane text,
    a_number bigint, a_op text, args jsonb) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r pressure_mp.reply := pressure_mp.find_call(a_lane, a_number);
BEGIN
    IF r.status = 'taken' AND a_kind = 'tasks' THEN
        RETURN pressure_mp.repeat_take(q.id, args, r);
    ELSIF r.status = 'taken' AND a_op IN ('take_with_hold', 'prefetch') THEN
        r := pressure_mp.repeat_taken(q, a_op, args, (r.info)::integer);
        IF r.status IS NULL THEN
            DELETE FROM pressure_mp.calls v WHERE v.lane = a_lane AND v.number = a_number;
        END IF;
    END IF;
    RETURN r;
END $$;

-- Return what is kept of the reply to a take. The tables have the items and the tasks, as long as they
-- are in flight.
CREATE OR REPLACE FUNCTION pressure_mp.shorten_take(r pressure_mp.reply, a_kind text)
RETURNS pressure_mp.reply LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF a_kind = 'items' THEN
        RETURN pressure_mp.said('taken', to_jsonb(coalesce(cardinality(r.items), 0)));
    END IF;
    RETURN pressure_mp.said('taken', r.info - 'tasks');
END $$;

-- Give the caller a place in line if it waits, and take it away if it is served. Returns the reply.
-- "moment" is the time of a call to a queue of tasks.
CREATE OR REPLACE FUNCTION pressure_mp.line_up(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, a_placed boolean, a_kind text, a_op text, args jsonb, a_items bytea[],
    r pressure_mp.reply)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_line text := CASE WHEN a_op = 'put' THEN 'p' WHEN a_op = 'join' THEN 'j'
        WHEN a_kind = 'tasks' THEN 't' ELSE 'c' END;
BEGIN
    IF r.status NOT IN ('no_space', 'no_item', 'no_task', 'unfinished') OR NOT args ? 'waits'
        OR c.session = ''
    THEN
        IF a_placed THEN
            DELETE FROM pressure_mp.waiting w
                WHERE w.slot = c.slot AND w.line = a_line AND w.place > coalesce(q.passed, 0)
                    AND w.session = c.session;
        END IF;
        RETURN r;
    END IF;
    PERFORM pressure_mp.stand(c, a_line, args ? 'until_ended', args->>'owner',
        CASE a_line WHEN 't' THEN a_items[1] ELSE '' END);
    IF a_line = 't' AND q.limited THEN
        r.info := pressure_mp.watch_limits(q, c, moment, r.info);
    ELSIF a_kind = 'items' AND a_line <> 'j'
        AND (pressure_mp.first_place(c.slot, a_line)).session = c.session
    THEN
        UPDATE pressure_mp.queues v
            SET version = v.version + 1,
                producer = CASE a_line WHEN 'p' THEN c.client ELSE v.producer END,
                consumer = CASE a_line WHEN 'c' THEN c.client ELSE v.consumer END
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id
                AND c.client IS DISTINCT FROM CASE a_line WHEN 'p' THEN v.producer ELSE v.consumer END;
    END IF;
    RETURN r;
END $$;

-- Wake the sessions in line that can go on after a call. Returns the ones of the caller's process, which
-- has the listener "own": the reply tells it of them.
CREATE OR REPLACE FUNCTION pressure_mp.wake_next(q pressure_mp.queues, a_slot bigint, a_prefix text,
    a_kind text, a_name text, a_op text, own bigint) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF a_kind = 'items' THEN
        PERFORM pressure_mp.wake_items(a_slot, a_prefix, a_name, own);
    ELSE
        PERFORM pressure_mp.wake_takers(a_slot, a_prefix, a_name, own);
        IF q.has_line THEN
            PERFORM pressure_mp.wake_putters(q, a_op, own);
        END IF;
    END IF;
    RETURN pressure_mp.woken_of(a_slot, own);
END $$;

-- "a_again": the same call may have been made before, over a connection that was lost.
-- "a_placed": the session may have a place in line.
CREATE OR REPLACE FUNCTION pressure_mp.call(a_prefix text, a_kind text, a_name text,
    a_discipline text, a_client text, a_lease bigint, a_session text, a_placed boolean,
    a_listener bigint, a_lane text, a_number bigint, a_again boolean,
    a_op text, args jsonb, a_items bytea[], a_keys bytea[],
    OUT status text, OUT info jsonb, OUT items bytea[], OUT woken bytea[], OUT is_early boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
    c pressure_mp.caller;
    r pressure_mp.reply;
    a_slot bigint;
    moment bigint;
BEGIN
    -- The settings: schema.py says what is done here.
    a_slot := pressure_mp.slot(a_prefix, a_kind, a_name);
    IF args ? 'durable' THEN
        PERFORM pressure_mp.be_durable((args->>'durable')::integer);
    END IF;
    IF NOT pg_try_advisory_xact_lock(a_slot) THEN
        is_early := pressure_mp.wait_for_lock(a_slot, args ? 'flushes' AND NOT a_again);
    END IF;
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, a_kind, a_name);
    -- This also writes something to commit: a commit that writes nothing waits for no standby, and
    -- the first call may not have waited.
    IF a_again OR a_op IN ('take_back', 'delete', 'dismiss') THEN
        q := pressure_mp.end_quick_calls(q);
    END IF;
    IF a_again AND a_lane IS NOT NULL THEN
        r := pressure_mp.repeat_call(q, a_kind, a_lane, a_number, a_op, args);
        IF r.status IS NOT NULL THEN
            status := r.status; info := r.info; items := r.items;
            woken := pressure_mp.woken_of(a_slot, a_listener);
            RETURN;
        END IF;
    END IF;
    c := ROW(a_slot, a_client, a_lease, a_session, a_listener);
    IF a_op = 'open' THEN
        r := pressure_mp.open_queue(q, a_slot, a_prefix, a_kind, a_name, a_discipline, args);
    ELSIF q.discipline IS DISTINCT FROM a_discipline THEN  -- or there is none
        r.status := 'missing';
    ELSIF a_kind = 'items' THEN
        r := pressure_mp.do_items(q, c, a_op, args, a_items, a_keys);
    ELSE
        moment := pressure_mp.clock();
        IF a_op NOT IN ('get_discipline', 'enlist', 'get_users', 'dismiss', 'delete', 'truncate',
            'requeue') AND pressure_mp.sweep_tasks(q, a_slot, moment)
        THEN
            SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, a_kind, a_name);
        END IF;
        r := pressure_mp.do_tasks(q, c, moment, a_op, args, a_items);
    END IF;
    IF a_op IN ('put', 'take', 'take_with_hold', 'join') AND (a_placed OR (args ? 'waits'
        AND r.status IN ('no_space', 'no_item', 'no_task', 'unfinished')))
    THEN
        r := pressure_mp.line_up(q, c, moment, a_placed, a_kind, a_op, args, a_items, r);
    END IF;
    IF a_lane IS NOT NULL AND (a_again OR r.status NOT IN
        ('no_space', 'no_item', 'no_task', 'unfinished', 'unprocessed', 'missing'))
    THEN
        PERFORM pressure_mp.keep_call(a_lane, a_number, q.id, CASE
            WHEN r.status = 'taken' AND r.undo IS NULL THEN pressure_mp.shorten_take(r, a_kind)
            ELSE r END);
    ELSE
        is_early := false;  -- nothing is done that is to last
    END IF;
    PERFORM FROM pressure_mp.waiting w WHERE w.slot = a_slot
        AND w.line IN ('p', 'c', 'j', 't') AND w.place > coalesce(q.passed, 0) LIMIT 1;
    IF FOUND THEN
        woken := pressure_mp.wake_next(q, a_slot, a_prefix, a_kind, a_name, a_op, a_listener);
    ELSIF q.has_line THEN
        PERFORM pressure_mp.note_line(a_slot, false);
    END IF;
    status := r.status; info := r.info; items := r.items;
END $$;

-- Do a request to a queue of items that exists.
CREATE OR REPLACE FUNCTION pressure_mp.do_items(q pressure_mp.queues, c pressure_mp.caller,
    a_op text, args jsonb, a_items bytea[], a_keys bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    CASE a_op
    WHEN 'put' THEN
        RETURN pressure_mp.put(q, c, args, a_items, a_keys);
    WHEN 'take' THEN
        RETURN pressure_mp.take(q, c, args);
    WHEN 'take_with_hold' THEN
        RETURN pressure_mp.take_with_hold(q, c, args);
    WHEN 'prefetch' THEN
        RETURN pressure_mp.prefetch(q, c, args);
    WHEN 'end_prefetch' THEN
        RETURN pressure_mp.end_prefetch(q, c, args);
    WHEN 'acknowledge' THEN
        RETURN pressure_mp.acknowledge(q, args);
    WHEN 'count_done' THEN
        RETURN pressure_mp.count_done(q);
    WHEN 'join' THEN
        IF pressure_mp.unfinished(q) <= 0 THEN
            RETURN pressure_mp.said('done');
        END IF;
        RETURN pressure_mp.said('unfinished', to_jsonb(pressure_mp.unfinished(q)));
    WHEN 'take_back' THEN
        RETURN pressure_mp.take_back(q, args->>'lane', (args->>'number')::bigint,
            args ? 'if_open');
    WHEN 'set_aside' THEN
        RETURN pressure_mp.set_aside(q, args, a_items[1]);
    WHEN 'requeue' THEN
        RETURN pressure_mp.requeue(q, c, args);
    WHEN 'renew' THEN
        RETURN pressure_mp.renew(q, c, args);
    WHEN 'retire' THEN
        RETURN pressure_mp.retire(q, args);
    WHEN 'close' THEN
        RETURN pressure_mp.close_queue(q, c, args);
    WHEN 'purge' THEN
        RETURN pressure_mp.purge(q);
    WHEN 'requeue_rejected' THEN
        RETURN pressure_mp.requeue_rejected(q, c, a_items[1]);
    WHEN 'drop_rejected' THEN
        RETURN pressure_mp.drop_rejected(q, a_items[1]);
    WHEN 'set_bound' THEN
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, bound = (args->>'bound')::bigint
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
        RETURN pressure_mp.said('done');
    WHEN 'inspect' THEN
        RETURN pressure_mp.inspect(q, c, args);
    ELSE
        RETURN pressure_mp.do_any(q, c, a_op, args, a_items);
    END CASE;
END $$;

-- Do a request that queues of items and of tasks have in common.
CREATE OR REPLACE FUNCTION pressure_mp.do_any(q pressure_mp.queues, c pressure_mp.caller, a_op text,
    args jsonb, parts bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    CASE a_op
    WHEN 'store_chunks' THEN
        RETURN pressure_mp.store_chunks(q, c, args, parts);
    WHEN 'read_chunks' THEN
        RETURN pressure_mp.read_chunks(q, c, args);
    WHEN 'sweep_contents' THEN
        RETURN pressure_mp.sweep_contents(q, args);
    WHEN 'delete' THEN
        PERFORM pressure_mp.drop_queue(q);
        RETURN pressure_mp.said('done');
    WHEN 'enlist' THEN
        RETURN pressure_mp.enlist(q, args);
    WHEN 'dismiss' THEN
        RETURN pressure_mp.dismiss(q, args);
    ELSE
        RETURN pressure_mp.look(q, a_op, args, parts);
    END CASE;
END $$;

-- Do a request that only reads one queue, without its lock where that is possible. The status "due":
-- transitions of tasks are to be made first, so the request needs a call with the lock.
CREATE OR REPLACE FUNCTION pressure_mp.look_at(a_prefix text, a_kind text, a_name text,
    a_discipline text, a_op text, args jsonb, a_items bytea[],
    OUT status text, OUT info jsonb, OUT items bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
    r pressure_mp.reply;
    a_slot bigint := pressure_mp.slot(a_prefix, a_kind, a_name);
    moment bigint;
    past bigint;
BEGIN
    IF a_op NOT IN ('exists', 'get_length', 'is_closed', 'get_discipline', 'count_ready') THEN
        PERFORM pg_advisory_xact_lock(a_slot);
    END IF;
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, a_kind, a_name);
    IF a_op = 'exists' THEN
        r := pressure_mp.said('exists', to_jsonb(q.discipline IS NOT DISTINCT FROM a_discipline));
    ELSIF q.id IS NULL OR (q.discipline <> a_discipline AND a_op <> 'get_discipline')
        OR (a_op IN ('get_snapshot', 'get_keys', 'get_queued') AND q.discipline <> 'fair')
    THEN
        r.status := 'missing';
    ELSIF a_op = 'count_ready' THEN
        moment := pressure_mp.clock();
        past := CASE WHEN moment < q.swept THEN 0 ELSE q.swept END;  -- the server's clock
        r := CASE WHEN pressure_mp.is_any_due(q.id, past, greatest(past, q.due_from), moment)
            THEN pressure_mp.said('due') ELSE pressure_mp.count_ready(q.id, a_items[1]) END;
    ELSE
        r := pressure_mp.look(q, a_op, args, a_items);
    END IF;
    status := r.status; info := r.info; items := r.items;
END $$;

-- Give up a session's places at a queue of items, or of tasks.
CREATE OR REPLACE FUNCTION pressure_mp.leave(a_prefix text, a_kind text, a_name text,
    a_session text)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_slot bigint := pressure_mp.slot(a_prefix, a_kind, a_name);
    before bigint;
    q pressure_mp.queues;
BEGIN
    PERFORM pg_advisory_xact_lock(a_slot);
    before := pressure_mp.passed(a_slot);
    DELETE FROM pressure_mp.waiting w WHERE w.slot = a_slot
        AND w.line IN ('p', 'c', 'j', 't') AND w.place > before AND w.session = a_session;
    DELETE FROM pressure_mp.watchers w WHERE w.slot = a_slot AND w.session = a_session;
    PERFORM FROM pressure_mp.waiting w WHERE w.slot = a_slot
        AND w.line IN ('p', 'c', 'j', 't') AND w.place > before LIMIT 1;
    IF FOUND THEN
        SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, a_kind, a_name);
        PERFORM pressure_mp.wake_next(q, a_slot, a_prefix, a_kind, a_name, 'leave', NULL);
    END IF;
END $$;

-- Do a request to the notes of a host: the anonymous queues that its processes use.
CREATE OR REPLACE FUNCTION pressure_mp.call_host(a_prefix text, a_host text, a_op text,
    names text[],
    disciplines text[], lanes text[]) RETURNS TABLE (name text, discipline text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    CASE a_op
    WHEN 'remember' THEN
        INSERT INTO pressure_mp.hosts SELECT a_prefix, a_host, u.n, u.d
            FROM unnest(names, disciplines) u (n, d) ON CONFLICT DO NOTHING;
    WHEN 'forget' THEN
        DELETE FROM pressure_mp.hosts h USING unnest(names, disciplines) u (n, d)
            WHERE h.prefix = a_prefix AND h.host = a_host AND h.name = u.n
                AND h.discipline = u.d;
    WHEN 'leave' THEN
        DELETE FROM pressure_mp.calls v WHERE v.lane = ANY (lanes);
    WHEN 'get_remembered' THEN
        RETURN QUERY SELECT h.name, h.discipline FROM pressure_mp.hosts h
            WHERE h.prefix = a_prefix AND h.host = a_host;
    END CASE;
END $$;
