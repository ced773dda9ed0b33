-- One function for each request to a queue of tasks.

CREATE OR REPLACE FUNCTION pressure_mp.call_tasks(a_prefix text, a_name text,
    a_client text, a_lease bigint, a_session text, a_placed boolean, a_listener bigint,
    a_lane text, a_number bigint, a_again boolean,
    a_op text, args jsonb, parts bytea[],
    OUT status text, OUT info jsonb, OUT items bytea[],
    OUT woken bytea[], OUT is_early boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
    c pressure_mp.caller;
    r pressure_mp.reply;
    a_slot bigint;
    moment bigint;
    w pressure_mp.watchers;
BEGIN
    -- The settings: schema.py says what is done here.
    a_slot := pressure_mp.slot(a_prefix, 'tasks', a_name);
    IF args ? 'durable' THEN
        PERFORM pressure_mp.be_durable((args->>'durable')::integer);
    END IF;
    IF NOT pg_try_advisory_xact_lock(a_slot) THEN
        is_early := pressure_mp.wait_for_lock(a_slot, args ? 'flushes' AND NOT a_again);
    END IF;
    -- A commit that writes nothing waits for no standby, and the first call may not have waited.
    IF a_again THEN
        UPDATE pressure_mp.queues v SET version = v.version + 1
            WHERE v.slot = a_slot
                AND v.prefix = a_prefix AND v.kind = 'tasks' AND v.name = a_name
            RETURNING * INTO q;
    END IF;
    IF a_again AND a_lane IS NOT NULL THEN
        r := pressure_mp.find_call(a_lane, a_number);
        IF r.status IS NOT NULL THEN
            IF a_op = 'take' AND r.status = 'taken' THEN
                r := pressure_mp.repeat_take(q.id, args, r);
            END IF;
            status := r.status; info := r.info; items := r.items;
            woken := pressure_mp.woken_of(a_slot, a_listener);
            RETURN;
        END IF;
    END IF;
    moment := pressure_mp.clock();
    SELECT * INTO q FROM pressure_mp.queues v
        WHERE v.slot = a_slot
            AND v.prefix = a_prefix AND v.kind = 'tasks' AND v.name = a_name
        ORDER BY v.version DESC LIMIT 1;
    c := ROW(a_slot, a_client, a_lease, a_session, a_listener);
    IF a_op = 'open_tasks' THEN
        r := pressure_mp.open_tasks(q, a_prefix, a_name, args);
    ELSIF q.id IS NULL THEN
        r.status := 'missing';
    ELSE
        IF a_op NOT IN ('get_discipline', 'enlist', 'get_users', 'dismiss', 'delete', 'truncate',
            'requeue')
        THEN
            IF pressure_mp.sweep_tasks(q, a_slot, moment) THEN
                SELECT * INTO q FROM pressure_mp.queues v
                    WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
            END IF;
        END IF;
        r := pressure_mp.do_tasks(q, c, moment, a_op, args, parts);
    END IF;
    IF a_op IN ('put', 'take', 'await') THEN
        IF r.status = 'no_space' AND args ? 'waits' AND a_session <> '' THEN
            PERFORM pressure_mp.stand(c, 'p', false, NULL, '');
        ELSIF r.status = 'no_task' AND args ? 'waits' THEN
            PERFORM pressure_mp.stand(c, 't', false, NULL, parts[1]);
            IF q.limited THEN
                r.info := pressure_mp.watch_limits(q, c, moment, r.info);
            END IF;
        ELSIF a_placed THEN
            DELETE FROM pressure_mp.waiting v
                WHERE v.slot = a_slot AND v.line IN ('p', 't') AND v.place > coalesce(q.passed, 0)
                    AND v.session = a_session;
        END IF;
    END IF;
    IF a_lane IS NOT NULL AND (a_again
        OR r.status NOT IN ('no_task', 'no_space', 'unprocessed', 'missing'))
    THEN
        PERFORM pressure_mp.keep_call(a_lane, a_number, q.id, CASE
            WHEN a_op <> 'take' OR r.status <> 'taken' THEN r
            WHEN args ? 'calls' THEN pressure_mp.shorten_take(r)
            ELSE pressure_mp.said('taken') END);
    ELSE
        is_early := false;  -- nothing is done that is to last
    END IF;
    PERFORM FROM pressure_mp.waiting v WHERE v.slot = a_slot AND v.line = 't'
        AND v.place > coalesce(q.passed, 0) LIMIT 1;
    IF FOUND THEN
        PERFORM pressure_mp.wake_takers(a_slot, a_prefix, a_name, a_listener);
        woken := pressure_mp.woken_of(a_slot, a_listener);
    END IF;
    IF q.has_line THEN
        PERFORM pressure_mp.wake_putters(q, a_op, a_listener);
        woken := pressure_mp.woken_of(a_slot, a_listener);
    END IF;
    IF a_op IN ('delete', 'dismiss') AND NOT EXISTS (SELECT FROM pressure_mp.queues v
        WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id)
    THEN
        FOR w IN DELETE FROM pressure_mp.watchers v WHERE v.slot = a_slot RETURNING * LOOP
            PERFORM pressure_mp.tell(w.listener, w.session, NULL);
        END LOOP;
    END IF;
    status := r.status; info := r.info; items := r.items;
END $$;

-- Do a request to a queue of tasks that exists.
CREATE OR REPLACE FUNCTION pressure_mp.do_tasks(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint,
    a_op text, args jsonb, parts bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t pressure_mp.tasks;
BEGIN
    CASE a_op
    WHEN 'put' THEN
        RETURN pressure_mp.put_tasks(q, c, moment, args, parts);
    WHEN 'make_ids' THEN
        RETURN pressure_mp.make_ids(q, moment, args);
    WHEN 'take' THEN
        RETURN pressure_mp.take_tasks(q, c, moment, args, parts);
    WHEN 'ack', 'release', 'bury', 'touch' THEN
        RETURN pressure_mp.settle_task(q, c, moment, a_op, args, parts);
    WHEN 'ack_many' THEN
        RETURN pressure_mp.ack_tasks(q, c, moment, args, parts);
    WHEN 'await' THEN
        RETURN pressure_mp.await_task(q, c, moment, args, parts);
    WHEN 'open_inbox' THEN
        RETURN pressure_mp.open_inbox(q, moment, args);
    WHEN 'watch_tasks' THEN
        RETURN pressure_mp.watch_tasks(q, moment, args, parts);
    WHEN 'take_notices' THEN
        RETURN pressure_mp.take_notices(q, c, moment, args);
    WHEN 'close_inbox' THEN
        PERFORM pressure_mp.close_inbox(q.id, args->>'inbox');
        RETURN pressure_mp.said('done');
    WHEN 'store_chunks' THEN
        RETURN pressure_mp.store_chunks(q, c, args, parts);
    WHEN 'read_chunks' THEN
        RETURN pressure_mp.read_chunks(q, c, args);
    WHEN 'sweep_contents' THEN
        RETURN pressure_mp.sweep_contents(q, args);
    WHEN 'get' THEN
        t := pressure_mp.get_task(q.id, parts[1]);
        IF t.id IS NULL THEN
            RETURN pressure_mp.said('absent');
        END IF;
        RETURN pressure_mp.tell_tasks('task', ARRAY[t], true);
    WHEN 'change' THEN
        RETURN pressure_mp.change_task(q, c, moment, args, parts);
    WHEN 'kick' THEN
        RETURN pressure_mp.kick_tasks(q, c, moment, args);
    WHEN 'list' THEN
        RETURN pressure_mp.list_tasks(q, args, parts);
    WHEN 'count' THEN
        RETURN pressure_mp.count_tasks(q, moment);
    WHEN 'count_ready' THEN
        RETURN pressure_mp.count_ready(q.id, parts[1]);
    WHEN 'truncate' THEN
        RETURN pressure_mp.truncate_tasks(q, c, moment, args);
    WHEN 'renew' THEN
        IF args ? 'holds' OR jsonb_array_length(args->'workers') > 0 THEN
            PERFORM pressure_mp.set_lease(q.id, 't', args->>'owner', moment + c.lease);
        END IF;
        IF args ? 'workers' THEN
            UPDATE pressure_mp.leases l SET workers = nullif(args->'workers', '[]')
                WHERE l.queue = q.id AND l.role = 't' AND l.owner = args->>'owner'
                    AND l.workers IS DISTINCT FROM nullif(args->'workers', '[]');
        END IF;
        RETURN pressure_mp.said('takers', jsonb_build_object('now', moment,
            'leases', pressure_mp.leases_of(q.id, 't'), 'lost', pressure_mp.not_had(q, args, parts)));
    WHEN 'workers' THEN
        RETURN pressure_mp.said('workers', jsonb_build_object('now', moment,
            'leases', pressure_mp.leases_of(q.id, 't'),
            'workers', (SELECT coalesce(jsonb_object_agg(l.owner, l.workers), '{}')
                FROM pressure_mp.leases l
                WHERE l.queue = q.id AND l.role = 't' AND l.workers IS NOT NULL)));
    WHEN 'requeue' THEN
        RETURN pressure_mp.requeue_tasks(q, c, moment, args, parts);
    WHEN 'configure' THEN
        IF q.settings = args->'was' THEN
            UPDATE pressure_mp.queues v
                SET version = v.version + 1, settings = args->'settings'
                WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
            PERFORM pressure_mp.bound_keys(q, (args->'settings'->>'per_key')::bigint);
            q.settings := args->'settings';
        END IF;
        RETURN pressure_mp.said('opened', q.settings);
    WHEN 'pause' THEN
        RETURN pressure_mp.pause_tasks(q, args, parts);
    WHEN 'limit' THEN
        RETURN pressure_mp.limit_tasks(q, args, parts);
    WHEN 'close' THEN
        UPDATE pressure_mp.queues v
            SET version = v.version + 1, closed = true
            WHERE v.slot = q.slot AND v.version >= q.version AND v.id = q.id;
        RETURN pressure_mp.said('done');
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
