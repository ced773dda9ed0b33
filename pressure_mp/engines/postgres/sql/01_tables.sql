-- The tables. The schema's name here is replaced by the name under which it is installed. All times
-- are milliseconds since the epoch, by the server's clock.

-- The queued items. The next one has the lowest rank, and of these the lowest position.
CREATE TABLE pressure_mp.items (
    queue bigint NOT NULL,
    rank bytea NOT NULL,
    position bigint NOT NULL,
    -- For an item that was in flight: its number, and how often it was delivered.
    number bigint NOT NULL,
    deliveries integer NOT NULL,
    -- The bytes of the item with its content; and the token of a content in chunks.
    size bigint NOT NULL,
    token text NOT NULL,
    tenant bytea,
    item bytea NOT NULL,
    PRIMARY KEY (queue, rank, position)
);
ALTER TABLE pressure_mp.items ALTER COLUMN item SET STORAGE EXTERNAL;

-- All queues, of items (kind 'items') or of tasks (kind 'tasks').
CREATE TABLE pressure_mp.queues (
    id bigint GENERATED ALWAYS AS IDENTITY,
    -- The function "slot" makes it of prefix, kind and name: also the number of the queue's lock.
    slot bigint NOT NULL,
    -- Increased by one with each change. It is in the index, so that the present row is found
    -- before all old ones, also while these cannot be cleaned up.
    version bigint NOT NULL DEFAULT 0,
    prefix text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    discipline text NOT NULL,
    bound bigint NOT NULL DEFAULT 0,
    closed boolean NOT NULL DEFAULT false,
    -- Shut down with immediate: requeued items are dropped.
    dropping boolean NOT NULL DEFAULT false,
    -- The client that put last, or waits to put; and the client that took last, or waits to take.
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
    -- The number of keys of a fair queue with a row and no items.
    idle_keys bigint NOT NULL DEFAULT 0,
    -- Every item is behind this rank and position: removed items before it are not read again, also
    -- while they cannot be cleaned up because a transaction has an old snapshot.
    head_rank bytea NOT NULL DEFAULT '',
    head_position bigint NOT NULL DEFAULT -9223372036854775808,
    -- For a queue by priority, in order: every item has one of these ranks, and is behind the
    -- position beside that. NULL in other queues, and from a time with too many ranks until the
    -- queue is empty: then there is only the head.
    ranks bytea[],
    positions bigint[],
    -- Every place in its lines is behind this one: earlier places are not read again.
    passed bigint NOT NULL DEFAULT 0,
    -- For queues of items: whether a client may be in line for space or for an item.
    has_line boolean NOT NULL DEFAULT false,
    -- Whether there was ever a process with a lease as a producer.
    had_producers boolean NOT NULL DEFAULT false,
    -- For queues of tasks: their options, the time of creation, the last arrival and the last id.
    settings jsonb,
    -- The tubes that are paused, '' for the whole queue.
    paused bytea[] NOT NULL DEFAULT '{}',
    -- Whether it, or a tube of it, has a limit.
    limited boolean NOT NULL DEFAULT false,
    created bigint NOT NULL DEFAULT 0,
    arrival bigint NOT NULL DEFAULT 0,
    counter bigint NOT NULL DEFAULT 0,
    -- All transitions that were due until then are made.
    swept bigint NOT NULL DEFAULT 0,
    -- Every task with a due transition has it later than this, which may be in the future: earlier
    -- entries are not read again.
    due_from bigint NOT NULL DEFAULT 0,
    -- The last quick put and the last quick take of one lane each, instead of in "calls": see
    -- 13_quick_calls.sql.
    put_lane text NOT NULL DEFAULT '',
    put_number bigint NOT NULL DEFAULT 0,
    take_lane text NOT NULL DEFAULT '',
    take_number bigint NOT NULL DEFAULT 0,
    taken pressure_mp.items
);
-- There is one of each: a client that creates a queue holds the lock of its name.
CREATE INDEX queues_slot ON pressure_mp.queues (slot, version);

-- The keys of a fair queue: the last round in which each has a share, how much of that is used up,
-- and how many items are queued. Keys without items stay until there are many of them: the number,
-- which only grows, is in the index, like a queue's version, but where a row was removed all old
-- entries are read.
CREATE TABLE pressure_mp.tenants (
    queue bigint NOT NULL,
    key bytea NOT NULL,
    number bigint NOT NULL,
    round bigint NOT NULL,
    used bigint NOT NULL,
    queued bigint NOT NULL
);
CREATE INDEX tenants_key ON pressure_mp.tenants (queue, key, number);

-- Items in flight. "passed": another process acknowledged it.
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

-- Handles that prefetch: the last call, 0 if there was none; the items that the handle is not known
-- to have handed out, and how many it is known to have handed out in all; and until when it counts
-- as a consumer, 0 when it has no items, and that call does nothing any more.
CREATE TABLE pressure_mp.readers (
    queue bigint NOT NULL,
    reader text NOT NULL,
    call bigint NOT NULL,
    entries pressure_mp.items[] NOT NULL,
    handed bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, reader)
);
ALTER TABLE pressure_mp.readers ALTER COLUMN entries SET STORAGE EXTERNAL;

-- Leases of processes: 'c' with deliveries, 'p' as a producer, 't' with tasks.
CREATE TABLE pressure_mp.leases (
    queue bigint NOT NULL,
    role text NOT NULL,
    owner text NOT NULL,
    until bigint NOT NULL,
    -- What a process says of its workers, which take tasks: a text of each.
    workers jsonb
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

-- The times until which contents in chunks are kept that are neither in flight nor set aside: NULL
-- while the item is queued, or while the result is kept.
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

-- The lines of waiting sessions, first come, first served: for space ('p'), for items ('c'), for
-- the end of all work ('j'), for a task ('t'). A place belongs to the name, even if another queue
-- gets it.
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
    -- Whether the end of every producer ends its wait, and the owner whose deliveries do not count.
    until_ended boolean NOT NULL DEFAULT false,
    owner text,
    tube bytea NOT NULL DEFAULT '',
    -- At a queue of tasks with limits: when it will call again by itself.
    due bigint,
    PRIMARY KEY (slot, line, place)
) WITH (fillfactor = 50);

-- The sessions that wait for the end of a task, and its outcome.
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
-- "undo" has the items that it took for good.
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
ALTER TABLE pressure_mp.calls ALTER COLUMN items SET STORAGE EXTERNAL;
ALTER TABLE pressure_mp.calls ALTER COLUMN undo SET STORAGE EXTERNAL;

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
    report bytea NOT NULL,
    data bytea NOT NULL,
    arrival bigint NOT NULL,
    -- The time for which its result is kept, 0 for not at all, -1 with the first of the inboxes;
    -- and the inboxes that are told of it.
    result_ttl bigint NOT NULL,
    inboxes text[] NOT NULL,
    -- The place in line at its priority: the number of its arrival; with a key 0 while it is not in
    -- line.
    key bytea NOT NULL,
    line bigint NOT NULL,
    unique_key bytea NOT NULL,
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

-- The beginnings of the ready tasks in line, like the head of items: taken tasks before them are
-- not read again. For a tube; for all tubes where that is ''. Every ready task has one of these
-- priorities, and is behind the place beside that. While there are too many priorities for that,
-- every ready task is behind the only priority and place. The number only grows; a part of it is in
-- the index, as in that of the ways.
CREATE TABLE pressure_mp.beginnings (
    queue bigint NOT NULL,
    tube bytea NOT NULL,
    number bigint NOT NULL,
    by_priority boolean NOT NULL,
    priorities double precision[] NOT NULL,
    lines bigint[] NOT NULL,
    part bigint GENERATED ALWAYS AS (number >> 5) STORED
) WITH (fillfactor = 50);
CREATE INDEX beginnings_part ON pressure_mp.beginnings (queue, tube, part);

-- The limits of tubes, '' for the whole queue: how many tasks are delivered in any so many
-- milliseconds. And the log of each: moments, the oldest first, and how many tasks were delivered at
-- each; see "Limit" in pressure_mp/engines/requests/limits.py.
CREATE TABLE pressure_mp.limits (
    queue bigint NOT NULL,
    tube bytea NOT NULL,
    number bigint NOT NULL,
    per bigint NOT NULL,
    moments bigint[] NOT NULL DEFAULT '{}',
    numbers bigint[] NOT NULL DEFAULT '{}',
    -- Whether the beginning of the line of all tubes may be behind tasks of this one.
    passed boolean NOT NULL DEFAULT false,
    -- It is the limit of each key of the tube, whose logs are in "key_logs".
    each_key boolean NOT NULL DEFAULT false,
    PRIMARY KEY (queue, tube, each_key)
) WITH (fillfactor = 50);

-- The logs of the limits of keys, and the time until which they count.
CREATE TABLE pressure_mp.key_logs (
    queue bigint NOT NULL,
    tube bytea NOT NULL,
    key bytea NOT NULL,
    moments bigint[] NOT NULL,
    numbers bigint[] NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, tube, key)
) WITH (fillfactor = 50);
CREATE INDEX key_logs_until ON pressure_mp.key_logs (queue, until);

-- Tasks of one key in one tube: the number of their last take, and the task that is in line. The limit
-- of the key keeps others out of the line until "blocked", 0 if it does not.
CREATE TABLE pressure_mp.groups (
    queue bigint NOT NULL,
    tube bytea NOT NULL,
    key bytea NOT NULL,
    last bigint NOT NULL,
    first bytea,
    blocked bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, tube, key)
) WITH (fillfactor = 50);
CREATE INDEX groups_blocked ON pressure_mp.groups (queue, blocked) WHERE blocked > 0;

-- The unique keys of tasks: the task that holds each, and the time until which no other task gets it. Without
-- "held" the task has ended, and the key is free from then on.
CREATE TABLE pressure_mp.holders (
    queue bigint NOT NULL,
    key bytea NOT NULL,
    id bytea NOT NULL,
    until bigint NOT NULL,
    held boolean NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (fillfactor = 50);
CREATE INDEX holders_until ON pressure_mp.holders (queue, until) WHERE NOT held;

-- Results of tasks: the time until which each is kept, NULL if only for one inbox, whose notice has
-- that number; the data of the result, and its token, if it is in chunks.
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

-- Inboxes of clients that are told of many tasks, and whether also that these are taken; and the
-- session that waits for the next notice.
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
    report bytea NOT NULL,
    PRIMARY KEY (queue, inbox, number)
);

-- Counts of the transitions of tasks. The part of the number that changes seldom is in the index: so
-- most updates leave no entry there, and of old rows only the last few are read before the present one.
CREATE TABLE pressure_mp.ways (
    queue bigint NOT NULL,
    way bytea NOT NULL,
    number bigint NOT NULL,
    part bigint GENERATED ALWAYS AS (number >> 5) STORED
) WITH (fillfactor = 50);
CREATE INDEX ways_way ON pressure_mp.ways (queue, way, part);

-- The samples of all queues, with their times, and the time until which each is kept.
CREATE TABLE pressure_mp.samples (
    prefix text NOT NULL,
    at bigint NOT NULL,
    until bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (prefix, at)
);
ALTER TABLE pressure_mp.samples ALTER COLUMN data SET STORAGE EXTERNAL;

-- Calls that callers' own transactions make when they commit, in the order of their numbers. Each
-- row is removed by the transaction that inserted it: no other one ever sees a row, so none is
-- logged.
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

-- The functions are in 12_transactions.sql.
CREATE FUNCTION pressure_mp.call_staged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER call_staged AFTER INSERT ON pressure_mp.staged
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pressure_mp.call_staged();
ALTER TABLE pressure_mp.staged ENABLE ALWAYS TRIGGER call_staged;

-- A reply, before it is encoded. "undo" has the items that a call took for good.
CREATE TYPE pressure_mp.reply AS (
    status text,
    info jsonb,
    items bytea[],
    undo pressure_mp.items[]
);

-- The caller of a function.
CREATE TYPE pressure_mp.caller AS (
    slot bigint,
    client text,
    lease bigint,
    session text,
    listener bigint
);
