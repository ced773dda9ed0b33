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
    ELSE
        RETURN pressure_mp.do_any(q, c, a_op, args, parts);
    END CASE;
END $$;
