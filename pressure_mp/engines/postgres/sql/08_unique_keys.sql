-- The unique keys of tasks, which one task at a time holds.

-- Return the task that holds a key, or whose time keeps it; NULL if the key is free.
CREATE OR REPLACE FUNCTION pressure_mp.holder_of(a_queue bigint, a_key bytea, moment bigint)
RETURNS pressure_mp.holders LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h pressure_mp.holders;
BEGIN
    SELECT * INTO h FROM pressure_mp.holders v
        WHERE v.queue = a_queue AND v.key = a_key AND (v.held OR v.until > moment);
    RETURN h;
END $$;

-- Give a key to a task, until it has ended, and at least until that time.
CREATE OR REPLACE FUNCTION pressure_mp.hold(a_queue bigint, a_key bytea, a_id bytea, a_until bigint)
RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO pressure_mp.holders VALUES (a_queue, a_key, a_id, a_until, true)
    ON CONFLICT (queue, key) DO UPDATE SET id = excluded.id, until = excluded.until, held = true
$$;

-- Give its key to a task that had ended, unless another one holds it.
CREATE OR REPLACE FUNCTION pressure_mp.hold_again(t pressure_mp.tasks, moment bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h pressure_mp.holders := pressure_mp.holder_of(t.queue, t.unique_key, moment);
BEGIN
    IF h.id IS NULL OR h.id = t.id THEN
        PERFORM pressure_mp.hold(t.queue, t.unique_key, t.id, coalesce(h.until, 0));
    END IF;
END $$;

-- Note that a task with a key has ended.
CREATE OR REPLACE FUNCTION pressure_mp.release_key(t pressure_mp.tasks, moment bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.holders v SET held = false
        WHERE v.queue = t.queue AND v.key = t.unique_key AND v.id = t.id AND v.held
            AND v.until > moment;
    IF NOT FOUND THEN
        DELETE FROM pressure_mp.holders v
            WHERE v.queue = t.queue AND v.key = t.unique_key AND v.id = t.id AND v.held;
    END IF;
END $$;

-- Do what a put does instead when a task holds its key; NULL: a task is to be put.
CREATE OR REPLACE FUNCTION pressure_mp.put_for_holder(q pressure_mp.queues, moment bigint, args jsonb,
    a_key bytea, a_tube bytea, a_data bytea) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h pressure_mp.holders := pressure_mp.holder_of(q.id, a_key, moment);
    t pressure_mp.tasks;
BEGIN
    IF h.id IS NULL THEN
        RETURN NULL;
    END IF;
    t := pressure_mp.get_task(q.id, h.id);
    IF NOT args ? 'replaces' OR t.id IS NULL OR NOT h.held THEN
        RETURN pressure_mp.told('held', to_jsonb(coalesce(t.state, 'X')), ARRAY[h.id], NULL);
    END IF;
    IF t.state = 'T' THEN
        RETURN NULL;
    END IF;
    t.data := a_data;
    t.priority := (args->>'priority')::double precision;
    PERFORM pressure_mp.revive(q, q.slot, moment, t, (args->>'delay')::bigint,
        (args->>'ttl')::bigint, a_tube);
    RETURN pressure_mp.told('ids', NULL, ARRAY[h.id], NULL);
END $$;
