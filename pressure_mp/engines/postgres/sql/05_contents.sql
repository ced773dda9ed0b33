-- The contents of large items, and of large results of tasks, in chunks, beside a queue.

-- Return the token in a manifest.
CREATE OR REPLACE FUNCTION pressure_mp.token_of(a_item bytea)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(substr(a_item, 5, 24), 'escape')
$$;

-- Return the bytes of an item with its content; and its token, if its content was stored.
CREATE OR REPLACE FUNCTION pressure_mp.weigh(a_queue bigint, a_item bytea, OUT size bigint,
    OUT token text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    digits text;
BEGIN
    size := octet_length(a_item);
    token := '';
    IF substr(a_item, 1, 4) <> decode('fa6d7031', 'hex') THEN
        RETURN;
    END IF;
    PERFORM FROM pressure_mp.contents k
        WHERE k.queue = a_queue AND k.token = pressure_mp.token_of(a_item);
    IF FOUND THEN
        token := pressure_mp.token_of(a_item);
        digits := encode(substr(a_item, 29, 16), 'escape');
        IF digits ~ '^[0-9a-f]{16}$' THEN
            size := ('x' || digits)::bit(64)::bigint;
        END IF;
    END IF;
END $$;

-- Keep a content for so many milliseconds.
CREATE OR REPLACE FUNCTION pressure_mp.keep(a_queue bigint, a_token text, a_time bigint)
RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pressure_mp.contents
        VALUES (a_queue, a_token, pressure_mp.clock() + greatest(a_time, 3000))
    ON CONFLICT (queue, token) DO UPDATE SET until = excluded.until
$$;

-- Remove contents whose time is over.
CREATE OR REPLACE FUNCTION pressure_mp.sweep(a_queue bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH gone AS (
        DELETE FROM pressure_mp.contents k
            WHERE k.queue = a_queue AND k.until <= pressure_mp.clock() RETURNING k.token
    )
    DELETE FROM pressure_mp.chunks v USING gone g WHERE v.queue = a_queue AND v.token = g.token;
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.end_content(a_queue bigint, a_token text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pressure_mp.contents k WHERE k.queue = a_queue AND k.token = a_token;
    DELETE FROM pressure_mp.chunks v WHERE v.queue = a_queue AND v.token = a_token;
END $$;

-- Remove the contents of all queued items.
CREATE OR REPLACE FUNCTION pressure_mp.end_queued_contents(a_queue bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.contents k SET until = 0 WHERE k.queue = a_queue AND k.until IS NULL;
    PERFORM pressure_mp.sweep(a_queue);
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.sweep_contents(q pressure_mp.queues, args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pressure_mp.contents k SET until = 0
        WHERE k.queue = q.id AND k.token = args->>'token' AND k.until IS NOT NULL;
    IF q.kind = 'items' AND q.length = 0 THEN
        PERFORM pressure_mp.end_queued_contents(q.id);
    ELSE
        PERFORM pressure_mp.sweep(q.id);
    END IF;
    RETURN pressure_mp.said('done');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.store_chunks(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb,
    chunks bytea[]) RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_first bigint := (args->>'first')::bigint;
BEGIN
    IF q.kind = 'items' AND q.closed THEN
        RETURN pressure_mp.said('closed');
    END IF;
    IF a_first = 0 THEN
        IF q.kind = 'items' AND q.length = 0 THEN
            PERFORM pressure_mp.end_queued_contents(q.id);
        ELSE
            PERFORM pressure_mp.sweep(q.id);
        END IF;
    ELSIF NOT EXISTS (SELECT FROM pressure_mp.contents k
        WHERE k.queue = q.id AND k.token = args->>'token'
            AND (k.until IS NULL OR k.until > pressure_mp.clock()))
    THEN
        RETURN pressure_mp.said('lost');
    END IF;
    INSERT INTO pressure_mp.chunks
        SELECT q.id, args->>'token', a_first + u.o - 1, u.chunk
        FROM unnest(chunks) WITH ORDINALITY u (chunk, o)
    ON CONFLICT (queue, token, number) DO UPDATE SET chunk = excluded.chunk;
    PERFORM pressure_mp.keep(q.id, args->>'token', c.lease);
    RETURN pressure_mp.said('done');
END $$;

CREATE OR REPLACE FUNCTION pressure_mp.read_chunks(q pressure_mp.queues, c pressure_mp.caller,
    args jsonb)
RETURNS pressure_mp.reply LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a_first bigint := (args->>'first')::bigint;
    n bigint := (args->>'number')::bigint;
    chunks bytea[];
BEGIN
    SELECT array_agg(v.chunk ORDER BY v.number) INTO chunks FROM pressure_mp.chunks v
        WHERE v.queue = q.id AND v.token = args->>'token'
            AND v.number >= a_first AND v.number < a_first + n;
    IF coalesce(cardinality(chunks), 0) <> n THEN
        RETURN pressure_mp.said('lost');
    END IF;
    UPDATE pressure_mp.contents k SET until = pressure_mp.clock() + greatest(c.lease * 12, 3000)
        WHERE k.queue = q.id AND k.token = args->>'token' AND k.until > pressure_mp.clock();
    RETURN pressure_mp.told('done', NULL, chunks, NULL);
END $$;
