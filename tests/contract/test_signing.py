"""Without the key no item is decoded, and no text shows the key."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import multiprocessing
import pickle
import traceback
from typing import ClassVar

import pytest
from programs.signing import Watched
from waiting import LIMIT

import pressure_mp
from pressure_mp import AuthenticationError, PressureQueue, Queue, RejectedItemWarning
from pressure_mp.encoding.codec import Codec
from pressure_mp.encoding.serializers import find
from pressure_mp.encoding.signing import LARGE, LARGE_MARK, MARK, Key, Signer

pytestmark = pytest.mark.usefixtures("world")

SECRET = "Vn3-this-is-the-secret"
ID, MAC = slice(4, 12), slice(12, 44)


@pytest.fixture
def make(url, name):
    """Makes handles to one queue."""

    def make(kind=Queue, name=name, **options):
        return kind(name=name, url=url, **options)

    return make


@pytest.fixture
def bare(url, name):
    """The queue in bytes, as a program without the key sees it."""
    return PressureQueue(name, url=url)


def expect_refusal(q, match, item=None):
    with pytest.raises(AuthenticationError, match=match) as caught:
        q.get(timeout=1)
    if item is not None:
        assert caught.value.payload == item
    return caught.value


@pytest.mark.parametrize(
    ("serializer", "item"),
    [("pickle", {"a": 1}), ("json", [1, "é"]), ("text", "é"), ("raw", b"\0" * 1_000_000)],
)
def test_a_signed_item_comes_back_as_it_went_in(make, serializer, item):
    q = make(serializer=serializer, authkey=SECRET)
    q.put(item)
    assert make(serializer=serializer, authkey=SECRET.encode()).get() == item


def framed(name):
    """The bytes that are signed before the payload."""
    parts = (b"__pressure__", name.encode())
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def signature(secret, name, payload):
    """That of a payload that is small, as docs/protocol.md says."""
    key = hashlib.blake2b(secret, digest_size=64, person=b"pressure_mp item").digest()
    of_queue = hashlib.blake2b(framed(name), digest_size=64, key=key).digest()
    return hashlib.blake2b(b"2" + payload, digest_size=32, key=of_queue).digest()


@pytest.mark.parametrize("size", [0, 7, LARGE - 1, LARGE, 100_000])
@pytest.mark.parametrize("secret", [SECRET, "longer than a key of BLAKE2b can be " * 4])
def test_a_queued_item_is_mark_key_id_mac_and_payload(make, bare, name, secret, size):
    payload = b"p" * size
    make(serializer="text", authkey=secret).put(payload.decode())
    item = bare.get()
    if size < LARGE:
        mark, mac = MARK, signature(secret.encode(), name, payload)
        assert mark == b"\xf9mp2"
    else:
        mark, mac = (
            LARGE_MARK,
            hmac.digest(secret.encode(), framed(name) + payload, hashlib.sha256),
        )
        assert mark == b"\xf9mp1"
    assert item[:4] == mark
    assert item[ID] == hmac.digest(secret.encode(), b"pressure_mp key id", hashlib.sha256)[:8]
    assert item[MAC] == mac
    assert item[44:] == payload


@pytest.mark.parametrize("size", [7, LARGE])
def test_either_signature_is_accepted_and_neither_under_the_mark_of_the_other(
    make, bare, name, size
):
    payload, secret = b"p" * size, SECRET.encode()
    q = make(serializer="text", authkey=["another", SECRET])
    q.open()
    by_hmac = hmac.digest(secret, framed(name) + payload, hashlib.sha256)
    for mark, mac in ((MARK, signature(secret, name, payload)), (LARGE_MARK, by_hmac)):
        item = mark + Key(secret).id + mac + payload
        bare.put(item)
        assert q.get() == payload.decode()
        bare.put(item[:-1] + b"x")
        expect_refusal(q, "wrong signature", item[:-1] + b"x")
        exchanged = bytes([*item[:3], item[3] ^ 3]) + item[4:]
        bare.put(exchanged)
        expect_refusal(q, "wrong signature", exchanged)
        bare.put(item)
        expect_refusal(make(serializer="text"), "has no key")


@pytest.mark.parametrize("kind", [Queue, pressure_mp.JoinableQueue, pressure_mp.SimpleQueue])
def test_an_unsigned_item_is_set_aside_and_never_decoded(make, bare, name, kind):
    watched = Watched()
    q = make(kind, serializer=watched, authkey=SECRET)
    q.open()
    forged = pickle.dumps("forged")
    bare.put(forged)
    q.put("good")
    error = expect_refusal(q, f"{name}.*is not signed.*rejected.*PRESSURE_AUTHKEY", forged)
    assert isinstance(error, multiprocessing.AuthenticationError)
    assert isinstance(error, pressure_mp.PressureError)
    assert watched.decoded == 0
    assert q.rejected() == [forged]
    assert q.get() == "good"
    assert watched.decoded == 1
    assert q.stats().unfinished == 1  # an item that no get returned needs no task_done


def test_no_changed_or_cut_item_is_decoded(make, bare):
    watched = Watched()
    q = make(serializer=watched, authkey=SECRET)
    q.put("good")
    item = bare.get()
    bad = [item[:length] for length in range(len(item))]
    bad += [item[:i] + bytes([item[i] ^ 1]) + item[i + 1 :] for i in range(len(item))]
    bad += [item + b"x", item[:12] + bytes(32) + item[44:], item[:44] + item]
    for forged in bad:
        bare.put(forged)
        expect_refusal(q, "set aside", forged)
    assert watched.decoded == 0
    assert len(q.rejected(1000)) == len(bad)
    bare.put(item)
    assert q.get() == "good"


def forged_from(item):
    """Changed, or cut."""
    changed = [item[:at] + bytes([item[at] ^ 1]) + item[at + 1 :] for at in (13, len(item) - 1)]
    return [item[:-1], item + b"x", *changed]


def test_no_changed_or_cut_item_of_a_batch_is_decoded(make, bare):
    watched = Watched()
    q = make(serializer=watched, authkey=SECRET)
    q.put("good")
    item = bare.get()
    for forged in forged_from(item):
        for each in (item, forged, item):
            bare.put(each)
        with pytest.warns(RejectedItemWarning):
            assert q.get_many(3) == ["good", "good"]
    assert watched.decoded == 8
    assert q.rejected() == forged_from(item)


class Unpickled:
    """Tells of it when it is unpickled."""

    seen: ClassVar[list[int]] = []

    def __init__(self, number):
        self.number = number

    def __setstate__(self, state):
        self.number = state["number"]
        self.seen.append(self.number)


@pytest.mark.parametrize("size", [0, 2 * LARGE])
@pytest.mark.only_threads("asyncio reads nothing ahead")
def test_no_changed_or_cut_pickle_that_is_read_ahead_is_unpickled(url, size):
    q = Queue(url=url, buffering=0)
    bare = PressureQueue(q.name, url=url)
    q.put((b"x" * size, Unpickled(-1)))
    item = bare.get()
    forged = [*forged_from(item), item[44:], item[:12] + bytes(32) + item[44:]]
    for number in range(40):
        q.put((b"x" * size, Unpickled(number)))
        if number >= 30:  # by then, they are read ahead
            bare.put(forged[number % len(forged)])
    Unpickled.seen.clear()
    refused = 0
    while len(Unpickled.seen) < 40 or refused < 10:
        try:
            q.get(timeout=LIMIT)
        except AuthenticationError:
            refused += 1
    assert Unpickled.seen == list(range(40))
    assert q.rejected(100) == [forged[number % len(forged)] for number in range(30, 40)]
    q.close()


def of_size(serializer, size):
    """An item, of a type that the serializer takes."""
    return {"pickle": (7, b"x" * size), "json": ["x" * size], "text": "x" * size}.get(
        serializer, b"x" * size
    )


@pytest.mark.parametrize("serializer", ["pickle", "json", "text", "raw"])
@pytest.mark.only_threads("asyncio reads nothing ahead")
def test_items_of_both_signatures_that_are_read_ahead_come_back_as_they_went_in(url, serializer):
    q = Queue(url=url, serializer=serializer, buffering=0)
    items = [of_size(serializer, number % 2 * 4 * LARGE + number) for number in range(60)]
    for item in items:
        q.put(item)
    found = [q.get(timeout=LIMIT) for _ in items]
    assert found == items
    assert {type(item) for item in found} == {type(item) for item in items}
    q.close()


@pytest.mark.only_threads("nothing here waits")
def test_a_large_pickled_item_is_not_copied_to_be_checked():
    codec = Codec(find("pickle"), (Key(SECRET.encode()),), "__pressure__", "jobs", False)
    item = codec.encode(b"x" * LARGE)
    (checked,) = codec.check_many([item])
    assert checked.obj is item
    assert codec.loads(checked) == b"x" * LARGE


@pytest.mark.only_threads("there is no prefetch in asyncio")
def test_no_changed_or_cut_item_that_was_fetched_ahead_is_decoded(make, bare):
    watched = Watched()
    q = make(serializer=watched, authkey=SECRET, prefetch=10)
    q.put("good")
    item = bare.get()
    for forged in forged_from(item):
        for each in (item, forged, item):
            bare.put(each)
        assert q.get() == "good"
        expect_refusal(q, "set aside", forged)
        assert q.get() == "good"
    assert watched.decoded == 8
    q.close()


def test_an_item_is_signed_for_one_queue(make, bare, url, name):
    other = make(name=f"{name}-other", authkey=SECRET)
    other.put("not for you")
    stolen = PressureQueue(other.name, url=url).get()
    q = make(authkey=SECRET)
    q.open()
    bare.put(stolen)
    expect_refusal(q, "for another queue", stolen)


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_prefix_and_name_are_told_apart_wherever_one_ends():
    keys = (Key(b"k"),)
    item = Signer(keys, "a", "b:c").sign(b"payload")
    for prefix, queue in [("a:b", "c"), ("a", "b:cpayload"), ("", "ab:c"), ("ab", ":c")]:
        with pytest.raises(AuthenticationError):
            Signer(keys, prefix, queue).check(item)
    assert Signer(keys, "a", "b:c").check(item) == b"payload"


def test_an_item_signed_with_another_key_says_which(make):
    q = make(authkey=SECRET)
    make(authkey="another").put("x")
    ids = [Key(secret).id.hex() for secret in (b"another", SECRET.encode())]
    expect_refusal(q, f"another key .{ids[0]}; this handle accepts {ids[1]}.*add it to the keys")


def test_a_handle_without_a_key_refuses_signed_items(make):
    make(authkey=SECRET).put("x")
    for serializer in ("pickle", "raw"):
        q = make(serializer=serializer)
        expect_refusal(q, "is signed .with key [0-9a-f]{16}., and this handle has no key.*authkey=")
        make(authkey=SECRET).put("x")


def test_an_unsigned_queue_refuses_to_put_what_would_look_signed(make, bare):
    make(serializer="raw", authkey=SECRET).put(b"x")
    with pytest.raises(pressure_mp.EncodingError, match="not signed"):
        make(serializer="raw").put(bare.get())


def test_without_a_key_a_named_queue_is_as_it_always_was(make, bare):
    make(serializer="text").put("plain")
    assert bare.get() == b"plain"


def test_a_key_is_changed_while_programs_run(make):
    """The three steps of docs/security.md, each with programs of the step before."""
    steps = ["old", ["old", "new"], ["new", "old"], "new"]
    for before, after in itertools.pairwise(steps):
        for producer, consumer in [(before, after), (after, before)]:
            make(authkey=producer).put("x")
            assert make(authkey=consumer).get() == "x"
    make(authkey="old").put("left over")
    expect_refusal(make(authkey="new"), "another key")


def test_the_environment_has_the_keys(make, monkeypatch):
    monkeypatch.setenv("PRESSURE_AUTHKEY", " new , old\n")
    make().put("x")
    assert make(authkey="new").get() == "x"
    make(authkey=[b"old"]).put("y")
    assert make().get() == "y"
    make(authkey="given").put("an argument wins")
    assert make(authkey="given").get() == "an argument wins"


@pytest.mark.parametrize("value", ["", " ", "a,,b", ","])
def test_an_empty_key_in_the_environment_is_an_error(url, name, monkeypatch, value):
    monkeypatch.setenv("PRESSURE_AUTHKEY", value)
    with pytest.raises(pressure_mp.ArgumentError, match="PRESSURE_AUTHKEY has an empty key"):
        Queue(name=name, url=url)
    monkeypatch.delenv("PRESSURE_AUTHKEY")
    assert not PressureQueue(name, url=url).exists()


@pytest.mark.parametrize("key", [7, [SECRET, 7], {SECRET}, bytearray(b"x"), [[SECRET]]])
def test_an_authkey_of_a_wrong_type_is_a_type_error_that_does_not_show_it(url, name, key):
    with pytest.raises(TypeError, match="authkey is bytes, a str, or a sequence") as caught:
        Queue(name=name, url=url, authkey=key)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", ["", b"", [], [SECRET, ""]])
def test_an_empty_key_is_an_error(url, name, key):
    with pytest.raises(pressure_mp.ArgumentError, match="empty key"):
        Queue(name=name, url=url, authkey=key)


def test_an_anonymous_queue_is_signed_with_the_key_of_the_process_tree(url, monkeypatch):
    monkeypatch.setenv("PRESSURE_SHARED_MEMORY", "0")
    with Queue(url=url, serializer="text") as q:
        q.put("x")
        bare = PressureQueue(q.name, url=url)
        item = bare.get()
        assert item[ID] == Key(bytes(multiprocessing.current_process().authkey)).id
        bare.put(item)
        assert q.get() == "x"
        bare.put(b"forged")
        expect_refusal(q, "is not signed", b"forged")


def test_create_and_attach_take_a_key(url, name):
    Queue.create(name, url=url, authkey=SECRET).put("x")
    assert Queue.attach(name, url=url, authkey=SECRET).get() == "x"


def test_the_key_is_never_shown(make, bare):
    q = make(authkey=[SECRET, "second"])
    q.put("x")
    item = bare.get()
    texts = [repr(q), str(vars(q)), str(vars(q._at.codec)), str(q.stats()), repr(pickle.dumps(q))]
    for forged in (b"plain", item[:-1], item[:5] + b"12345678" + item[12:]):
        bare.put(forged)
        try:
            q.get()
        except AuthenticationError as error:
            texts += [repr(error), traceback.format_exc(), repr(pickle.dumps(error))]
    try:
        pickle.dumps(q._at.codec._keys)
    except TypeError as error:
        texts += [repr(error), traceback.format_exc()]
    assert len(texts) == 5 + 9 + 2
    for text in texts:
        assert SECRET not in text
        assert SECRET.encode().hex() not in text


def test_a_copy_in_the_same_process_still_has_its_key(make):
    q = make(authkey=SECRET)
    copy = pickle.loads(pickle.dumps(q))
    copy.put("x")
    assert q.get() == "x"
    assert pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(q)))).put("y") is None


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(AuthenticationError("text", b"item")))
    assert (str(error), error.payload) == ("text", b"item")
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pressure_mp.Nothing
