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

-- Put tasks with unique keys. "parts" are the tube, the key, the unique key of each task, the ids if some
-- are "chosen", and the data of each.
CREATE OR REPLACE FUNCTION pressure_mp.put_unique(q pressure_mp.queues, c pressure_mp.caller,
    moment bigint, args jsonb, parts bytea[]) RETURNS pressure_mp.reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    how text := args->>'on_conflict';
    are_chosen boolean := args ? 'chosen';
    n integer := (cardinality(parts) - 2) / (2 + are_chosen::integer);
    keys bytea[] := parts[3:n + 2];
    data bytea[] := parts[cardinality(parts) - n + 1:];
    h pressure_mp.holders;
    t pressure_mp.tasks;
    r pressure_mp.reply;
    ids bytea[] := array_fill(NULL::bytea, ARRAY[n]);
    space bigint := pressure_mp.space(q, c, args);
    -- So many of the tasks are dealt with.
    most integer := n;
    is_new boolean;
    -- The places of the tasks that are put, and the places of the tasks for which a holder changes.
    new integer[] := '{}';
    changed integer[] := '{}';
BEGIN
    FOR i IN 1 .. n LOOP
        h := NULL;
        IF keys[i] <> '' THEN
            h := pressure_mp.holder_of(q.id, keys[i], moment);
        END IF;
        t := pressure_mp.get_task(q.id, h.id);
        IF h.id IS NOT NULL AND how = 'error' THEN
            RETURN pressure_mp.told('held', to_jsonb(coalesce(t.state, 'X')), ARRAY[h.id], NULL);
        ELSIF i > most THEN
            CONTINUE;
        END IF;
        is_new := h.id IS NULL OR how = 'replace' AND t.state IS NOT DISTINCT FROM 'T';
        IF is_new AND cardinality(new) >= space THEN
            most := i - 1;
        ELSIF is_new THEN
            new := new || i;
        ELSE
            ids[i] := h.id;
            IF how = 'replace' AND t.state IN ('R', 'W') THEN
                changed := changed || i;
            END IF;
        END IF;
    END LOOP;
    IF most = 0 THEN
        RETURN pressure_mp.said('no_space', to_jsonb(pressure_mp.count_queued(q.id)));
    END IF;
    ids := ids[:most];
    IF cardinality(new) > 0 THEN
        r := pressure_mp.put_tasks(q, c, moment, args - 'on_conflict',
            parts[:2] || CASE WHEN are_chosen THEN ARRAY(SELECT parts[n + 2 + i] FROM unnest(new) i) END
                || ARRAY(SELECT data[i] FROM unnest(new) i),
            ARRAY(SELECT keys[i] FROM unnest(new) i));
        IF r.status <> 'ids' THEN
            RETURN r;
        END IF;
    END IF;
    FOR o IN 1 .. cardinality(new) LOOP
        ids[new[o]] := r.items[o];
        IF keys[new[o]] <> '' THEN
            PERFORM pressure_mp.hold(q.id, keys[new[o]], r.items[o],
                moment + (args->>'unique_for')::bigint);
        END IF;
    END LOOP;
    FOR o IN 1 .. cardinality(changed) LOOP
        t := pressure_mp.get_task(q.id, ids[changed[o]]);
        t.data := data[changed[o]];
        t.priority := (args->>'priority')::double precision;
        PERFORM pressure_mp.revive(q, q.slot, moment, t, (args->>'delay')::bigint,
            (args->>'ttl')::bigint, parts[1]);
    END LOOP;
    RETURN pressure_mp.told('ids', NULL, ids, NULL);
END $$;
