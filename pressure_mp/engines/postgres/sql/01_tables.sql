-- What is kept. The schema's name stands for whatever name it is installed under.
-- All times are milliseconds since the epoch, by the server's clock.

-- What is queued. The next one has the lowest rank, and of these the lowest position.
CREATE TABLE pressure_mp.items (
    queue bigint NOT NULL,
    rank bytea NOT NULL,
    position bigint NOT NULL,
    -- Of one that was in flight: its number, and how often it was delivered.
    number bigint NOT NULL,
    deliveries integer NOT NULL,
    -- The bytes that there are to be had; and the token of a content in chunks.
    size bigint NOT NULL,
    token text NOT NULL,
    tenant bytea,
    item bytea NOT NULL,
    PRIMARY KEY (queue, rank, position)
);
ALTER TABLE pressure_mp.items ALTER COLUMN item SET STORAGE EXTERNAL;

-- Every queue, of items (kind 'items') or of tasks (kind 'tasks').
CREATE TABLE pressure_mp.queues (
    id bigint GENERATED ALWAYS AS IDENTITY,
    -- What the function "slot" makes of prefix, kind and name: also the number of the queue's lock.
    slot bigint NOT NULL,
    -- One more with each change. It is in the index, so that what is there now is found before all
    -- that was, also while that cannot be cleaned up.
    version bigint NOT NULL DEFAULT 0,
    prefix text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    discipline text NOT NULL,
    bound bigint NOT NULL DEFAULT 0,
    closed boolean NOT NULL DEFAULT false,
    -- Shut down with immediate: what comes back is dropped.
    dropping boolean NOT NULL DEFAULT false,
    -- Who put last, or waits to do so; and who took.
    producer text,
    consumer text,
    length bigint NOT NULL DEFAULT 0,
    produced_messages bigint NOT NULL DEFAULT 0,
    produced_bytes bigint NOT NULL DEFAULT 0,
    consumed_messages bigint NOT NULL DEFAULT 0,
    consumed_bytes bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    -- The last position in the queue, the last number of a delivery, and the round being served.
    position bigint NOT NULL DEFAULT 0,
    number bigint NOT NULL DEFAULT 0,
    round bigint NOT NULL DEFAULT 0,
    -- How many keys of a fair queue have a row and no items.
    idle_keys bigint NOT NULL DEFAULT 0,
    -- Every item is behind this rank and position: what was removed before is not looked at again,
    -- also while it cannot be cleaned up, since somebody has an old snapshot.
    head_rank bytea NOT NULL DEFAULT '',
    head_position bigint NOT NULL DEFAULT -9223372036854775808,
    -- Of a queue by priority, in order: every item is of one of these ranks, and behind the position beside
    -- it. NULL in other queues, and from too many ranks at a time until the queue is empty: then there is
    -- only the head.
    ranks bytea[],
    positions bigint[],
    -- Every place in its lines is behind this one: those before it are not looked at again.
    passed bigint NOT NULL DEFAULT 0,
    -- Of items: whether somebody may be in line for space or for an item.
    has_line boolean NOT NULL DEFAULT false,
    -- Whether there was ever a process with a lease as a producer.
    had_producers boolean NOT NULL DEFAULT false,
    -- Of tasks: their options, when it was created, the last arrival and the last id.
    settings jsonb,
    created bigint NOT NULL DEFAULT 0,
    arrival bigint NOT NULL DEFAULT 0,
    counter bigint NOT NULL DEFAULT 0,
    -- All that was due until then has moved on.
    swept bigint NOT NULL DEFAULT 0,
    -- Every task that is due is so later than this, which may be to come: what was due before is not
    -- looked at again.
    due_from bigint NOT NULL DEFAULT 0,
    -- The notes of the last quick put and of the last quick take of one lane each, instead of in "calls":
    -- see 13_quick_calls.sql.
    put_lane text NOT NULL DEFAULT '',
    put_number bigint NOT NULL DEFAULT 0,
    take_lane text NOT NULL DEFAULT '',
    take_number bigint NOT NULL DEFAULT 0,
    taken pressure_mp.items
);
-- There is one of each: who creates a queue holds the lock of its name.
CREATE INDEX queues_slot ON pressure_mp.queues (slot, version);

-- The keys of a fair queue: the last round that each has a share of, how much of that is used up, and how
-- many items are queued. Those without items stay until there are many of them: the number, which only
-- grows, is in the index, as a queue's version, but where a row was removed all that was there is looked at.
CREATE TABLE pressure_mp.tenants (
    queue bigint NOT NULL,
    key bytea NOT NULL,
    number bigint NOT NULL,
    round bigint NOT NULL,
    used bigint NOT NULL,
    queued bigint NOT NULL
);
CREATE INDEX tenants_key ON pressure_mp.tenants (queue, key, number);

-- Items in flight. "passed": another process said that it is dealt with.
CREATE TABLE pressure_mp.deliveries (
    queue bigint NOT NULL,
    number bigint NOT NULL,
    owner text NOT NULL,
    call bigint NOT NULL,
    most bigint NOT NULL,
    token text NOT NULL,
    passed boolean NOT NULL DEFAULT false,
    entry pressure_mp.items NOT NULL,
    PRIMARY KEY (queue, number)
);

-- Handles that prefetch: the last call, what it took, and how many of these were handed out.
CREATE TABLE pressure_mp.readers (
    queue bigint NOT NULL,
    reader text NOT NULL,
    call bigint NOT NULL,
    entries pressure_mp.items[] NOT NULL,
    handed bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, reader)
);

-- Leases of processes: 'c' of one with deliveries, 'p' of a producer, 't' of one with tasks.
CREATE TABLE pressure_mp.leases (
    queue bigint NOT NULL,
    role text NOT NULL,
    owner text NOT NULL,
    until bigint NOT NULL
);
CREATE INDEX leases_owner ON pressure_mp.leases (queue, role, owner, until);

-- The processes that use an anonymous queue.
CREATE TABLE pressure_mp.users (
    queue bigint NOT NULL,
    who text NOT NULL,
    PRIMARY KEY (queue, who)
);

CREATE TABLE pressure_mp.rejected (
    queue bigint NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    item bytea NOT NULL,
    PRIMARY KEY (queue, number)
);

-- Contents in chunks that are not in flight, nor set aside: until when, NULL while queued, or while
-- the result is kept that they are of.
CREATE TABLE pressure_mp.contents (
    queue bigint NOT NULL,
    token text NOT NULL,
    until bigint,
    PRIMARY KEY (queue, token)
);
CREATE INDEX contents_until ON pressure_mp.contents (queue, until);
CREATE TABLE pressure_mp.chunks (
    queue bigint NOT NULL,
    token text NOT NULL,
    number bigint NOT NULL,
    chunk bytea NOT NULL,
    PRIMARY KEY (queue, token, number)
);
ALTER TABLE pressure_mp.chunks ALTER COLUMN chunk SET STORAGE EXTERNAL;

-- Who waits, first come first served: for space ('p'), for items ('c'), for the end of all work
-- ('j'), for a task ('t'). A place belongs to the name, whatever queue has it.
CREATE TABLE pressure_mp.waiting (
    slot bigint NOT NULL,
    line text NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    session text NOT NULL,
    -- The process's listening connection holds an advisory lock of that number.
    listener bigint,
    client text NOT NULL,
    since bigint NOT NULL,
    seen bigint NOT NULL,
    lease bigint NOT NULL,
    woken boolean NOT NULL DEFAULT false,
    -- Whether the end of every producer is the end of its wait, and whose deliveries do not count.
    until_ended boolean NOT NULL DEFAULT false,
    owner text,
    tube bytea NOT NULL DEFAULT '',
    PRIMARY KEY (slot, line, place)
) WITH (fillfactor = 50);

-- Who waits for what becomes of a task, and what did.
CREATE TABLE pressure_mp.watchers (
    slot bigint NOT NULL,
    session text NOT NULL,
    task bytea NOT NULL,
    listener bigint,
    outcome text,
    seen bigint NOT NULL,
    PRIMARY KEY (slot, session)
);
CREATE INDEX ON pressure_mp.watchers (slot, task);

-- Calls that were made, by lane and number, and the replies: a call that comes twice is done once.
-- "undo" is what it took for good.
CREATE TABLE pressure_mp.calls (
    lane text NOT NULL,
    number bigint NOT NULL,
    queue bigint,
    status text NOT NULL,
    info jsonb,
    items bytea[],
    undo pressure_mp.items[],
    made timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (lane, number)
);

CREATE TABLE pressure_mp.hosts (
    prefix text NOT NULL,
    host text NOT NULL,
    name text NOT NULL,
    discipline text NOT NULL,
    PRIMARY KEY (prefix, host, name, discipline)
);

CREATE TABLE pressure_mp.tasks (
    queue bigint NOT NULL,
    id bytea NOT NULL,
    state text NOT NULL,
    priority double precision NOT NULL,
    created bigint NOT NULL,
    since bigint NOT NULL,
    due bigint NOT NULL,
    deliveries bigint NOT NULL,
    call bigint NOT NULL,
    tube bytea NOT NULL,
    owner text NOT NULL,
    error bytea NOT NULL,
    data bytea NOT NULL,
    arrival bigint NOT NULL,
    -- For how long its result is kept, 0 for not at all, -1 with the first of the inboxes; and those
    -- that hear of it.
    result_ttl bigint NOT NULL,
    inboxes text[] NOT NULL,
    -- The place in line at its priority: that of its arrival; with a key 0 while it is not in line.
    key bytea NOT NULL,
    line bigint NOT NULL,
    PRIMARY KEY (queue, id)
) WITH (fillfactor = 70);
CREATE INDEX tasks_ready ON pressure_mp.tasks (queue, priority, line)
    WHERE state = 'R' AND line > 0;
CREATE INDEX tasks_ready_in_tube ON pressure_mp.tasks (queue, tube, priority, line)
    WHERE state = 'R' AND line > 0;
CREATE INDEX tasks_of_key ON pressure_mp.tasks (queue, tube, key, state, priority, arrival)
    WHERE key <> '';
CREATE INDEX tasks_due ON pressure_mp.tasks (queue, due, id) WHERE due > 0;
CREATE INDEX tasks_taken ON pressure_mp.tasks (queue, owner, call) WHERE state = 'T';
CREATE INDEX tasks_at_rest ON pressure_mp.tasks (queue, state, since, arrival)
    WHERE state IN ('B', 'D');

-- Where the ready tasks in line begin, as items do behind their head: what was taken before is not
-- looked at again. In a tube; in all of them where that is ''. Every ready task is of one of these
-- priorities, and behind the place beside it. While there are too many priorities for that it is not
-- so by priority: every ready task is behind the only priority and place. The number, which only grows, is
-- in the index, as a queue's version.
CREATE TABLE pressure_mp.beginnings (
    queue bigint NOT NULL,
    tube bytea NOT NULL,
    number bigint NOT NULL,
    by_priority boolean NOT NULL,
    priorities double precision[] NOT NULL,
    lines bigint[] NOT NULL
);
CREATE INDEX beginnings_number ON pressure_mp.beginnings (queue, tube, number);

-- Tasks of one key in one tube: the number of the last take of one, and the one that is in line.
CREATE TABLE pressure_mp.groups (
    queue bigint NOT NULL,
    tube bytea NOT NULL,
    key bytea NOT NULL,
    last bigint NOT NULL,
    first bytea,
    PRIMARY KEY (queue, tube, key)
) WITH (fillfactor = 50);

-- What came of tasks: until when, NULL if it is kept for one inbox alone, whose notice has that
-- number; what the taker said, and the token of that, if it is in chunks.
CREATE TABLE pressure_mp.results (
    queue bigint NOT NULL,
    id bytea NOT NULL,
    until bigint,
    outcome text NOT NULL,
    inbox text NOT NULL,
    number bigint NOT NULL,
    data bytea NOT NULL,
    token text NOT NULL,
    PRIMARY KEY (queue, id)
);
ALTER TABLE pressure_mp.results ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX results_until ON pressure_mp.results (queue, until);
CREATE INDEX results_of_inbox ON pressure_mp.results (queue, inbox, number) WHERE inbox <> '';

-- Inboxes of clients that hear of many tasks, and whether also that these are taken; and who waits for the
-- next notice.
CREATE TABLE pressure_mp.inboxes (
    queue bigint NOT NULL,
    name text NOT NULL,
    lease bigint NOT NULL,
    until bigint NOT NULL,
    number bigint NOT NULL,
    takes boolean NOT NULL,
    session text,
    listener bigint,
    PRIMARY KEY (queue, name)
) WITH (fillfactor = 50);

CREATE TABLE pressure_mp.notices (
    queue bigint NOT NULL,
    inbox text NOT NULL,
    number bigint NOT NULL,
    task bytea NOT NULL,
    event text NOT NULL,
    deliveries bigint NOT NULL,
    error bytea NOT NULL,
    PRIMARY KEY (queue, inbox, number)
);

-- How many tasks went which way. The number, which only grows, is in the index, as a queue's version.
CREATE TABLE pressure_mp.ways (
    queue bigint NOT NULL,
    way bytea NOT NULL,
    number bigint NOT NULL
);
CREATE INDEX ways_way ON pressure_mp.ways (queue, way, number);

-- What was noted of all queues, at times of the clock, until a time.
CREATE TABLE pressure_mp.samples (
    prefix text NOT NULL,
    at bigint NOT NULL,
    until bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (prefix, at)
);
ALTER TABLE pressure_mp.samples ALTER COLUMN data SET STORAGE EXTERNAL;

-- Calls that callers' own transactions make when they commit, in the order of their numbers. Each row
-- is removed by the transaction that inserted it: nobody else ever sees one, so none is logged.
CREATE UNLOGGED TABLE pressure_mp.staged (
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number bigint GENERATED ALWAYS AS IDENTITY,
    slot bigint NOT NULL,
    prefix text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    discipline text NOT NULL,
    client text NOT NULL,
    lease bigint NOT NULL,
    op text NOT NULL,
    args jsonb NOT NULL,
    items bytea[] NOT NULL,
    keys bytea[] NOT NULL,
    PRIMARY KEY (transaction, number)
);
ALTER TABLE pressure_mp.staged ALTER COLUMN items SET STORAGE EXTERNAL;

-- What it does is in 11_transactions.sql.
CREATE FUNCTION pressure_mp.call_staged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER call_staged AFTER INSERT ON pressure_mp.staged
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pressure_mp.call_staged();
ALTER TABLE pressure_mp.staged ENABLE ALWAYS TRIGGER call_staged;

-- A reply, before it is told. "undo" is what a call took for good.
CREATE TYPE pressure_mp.reply AS (
    status text,
    info jsonb,
    items bytea[],
    undo pressure_mp.items[]
);

-- Who calls.
CREATE TYPE pressure_mp.caller AS (
    slot bigint,
    client text,
    lease bigint,
    session text,
    listener bigint
);
