-- A put on one queue that settles a delivery of another one, or of the same: both are done, or neither.

-- "s_…": the queue of the delivery, and the call that settles it. The rest is as for "call", for the
-- queue of the put. The status "forwarded" has the replies of both, "refused" the reply to the call
-- that settles; any other is the reply to the put, and nothing is settled.
CREATE OR REPLACE FUNCTION pressure_mp.forward(s_prefix text, s_kind text, s_name text,
    s_discipline text, s_op text, s_args jsonb, s_items bytea[],
    a_prefix text, a_kind text, a_name text, a_discipline text,
    a_client text, a_lease bigint, a_session text, a_placed boolean, a_listener bigint,
    a_lane text, a_number bigint, a_again boolean,
    a_op text, args jsonb, a_items bytea[], a_keys bytea[],
    OUT status text, OUT info jsonb, OUT items bytea[], OUT woken bytea[], OUT is_early boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    source bigint;
    target bigint;
    r pressure_mp.reply;
    p record;
    s record;
    a_queue bigint;
BEGIN
    -- The settings: schema.py says what is done here.
    source := pressure_mp.slot(s_prefix, s_kind, s_name);
    target := pressure_mp.slot(a_prefix, a_kind, a_name);
    is_early := false;
    -- All who take two locks take them in this order.
    PERFORM pg_advisory_xact_lock(least(source, target));
    PERFORM pg_advisory_xact_lock(greatest(source, target));
    IF a_again THEN
        PERFORM pg_logical_emit_message(true, 'pressure_mp', '');  -- something to commit
        r := pressure_mp.find_call(a_lane, a_number);
        IF r.status IS NOT NULL THEN
            status := r.status; info := r.info; items := r.items;
            woken := pressure_mp.woken_of(target, a_listener);
            RETURN;
        END IF;
    END IF;
    IF NOT pressure_mp.may_settle(source, s_prefix, s_kind, s_name, s_args, s_items) THEN
        SELECT * INTO s FROM pressure_mp.call(s_prefix, s_kind, s_name, s_discipline, a_client,
            a_lease, '', false, a_listener, NULL, 0, false, s_op, s_args, s_items, '{}');
        status := 'refused'; woken := s.woken;
        info := jsonb_build_object('status', s.status, 'info', s.info); items := s.items;
        RETURN;
    END IF;
    BEGIN
        SELECT * INTO p FROM pressure_mp.call(a_prefix, a_kind, a_name, a_discipline, a_client,
            a_lease, a_session, a_placed, a_listener, NULL, 0, false, a_op, args, a_items, a_keys);
        IF p.status NOT IN ('added', 'ids') THEN
            status := p.status; info := p.info; items := p.items; woken := p.woken;
            RETURN;
        END IF;
        SELECT * INTO s FROM pressure_mp.call(s_prefix, s_kind, s_name, s_discipline, a_client,
            a_lease, '', false, a_listener, NULL, 0, false, s_op, s_args, s_items, '{}');
        IF s.status NOT IN ('done', 'task') THEN
            RAISE SQLSTATE 'PMREF';  -- the put is undone
        END IF;
    EXCEPTION WHEN SQLSTATE 'PMREF' THEN
        status := 'refused';
        info := jsonb_build_object('status', s.status, 'info', s.info); items := s.items;
        RETURN;
    END;
    SELECT v.id INTO a_queue FROM pressure_mp.find_queue(target, a_prefix, a_kind, a_name) v;
    status := 'forwarded';
    info := jsonb_build_object('put', p.status, 'info', p.info, 'number', coalesce(cardinality(p.items), 0),
        'settled', s.status, 'told', s.info);
    items := p.items || s.items;
    woken := p.woken || s.woken;
    PERFORM pressure_mp.keep_call(a_lane, a_number, a_queue,
        ROW(status, info, items, NULL)::pressure_mp.reply);
END $$;

-- Return whether a call may settle a delivery: its process has that, the content of the result exists,
-- and no more work on items is done than there was.
CREATE OR REPLACE FUNCTION pressure_mp.may_settle(a_slot bigint, a_prefix text, a_kind text,
    a_name text, args jsonb, a_items bytea[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q pressure_mp.queues;
BEGIN
    SELECT * INTO q FROM pressure_mp.find_queue(a_slot, a_prefix, a_kind, a_name);
    IF q.id IS NULL THEN
        RETURN false;
    ELSIF a_kind = 'tasks' THEN
        PERFORM pressure_mp.sweep_tasks(q, a_slot, pressure_mp.clock());
        RETURN pressure_mp.has_content(q.id, args->>'token')
            AND (pressure_mp.not_held(pressure_mp.get_task(q.id, a_items[1]), args->>'owner',
                (args->>'call')::bigint)).status IS NULL;
    END IF;
    PERFORM FROM pressure_mp.deliveries v WHERE v.queue = q.id
        AND v.number = (args->>'number')::bigint AND v.owner = args->>'owner' AND NOT v.passed;
    RETURN FOUND AND pressure_mp.unfinished(q) > 0;
END $$;
