"""What a client in Python sees of a real server: client_cases.py SCHEDULER JOB CASE

The job is asynchronous, with one server, plain SGD of rate RATE on table 0, and one worker that
has trained and stands still; the cases use keys and tasks of their own.
"""

import random
import secrets
import struct
import sys

import grpc

import strata_client
from proto.strata import data_pb2

RATE = 0.5
FEATURES = 0


def some_keys(count, seed):
    draw = random.Random(seed)
    return [draw.getrandbits(64) for _ in range(count)]


def some_task(seed):
    """Far above the job's own."""
    return (1 << 40) + seed


def expect(code, call, part=""):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        assert part in error.details(), error.details()
        return error.details()
    raise AssertionError("expected %s" % code)


def applied(before, gradients, examples):
    return {k: strata_client.round_trip([w - RATE * g / examples
                                         for w, g in zip(before[k], gradients[k])])
            for k in before}


def same(rows, want):
    assert rows.keys() == want.keys()
    for key, row in rows.items():
        for x, y in zip(row, want[key]):
            assert abs(x - y) <= 1e-6 * max(1.0, abs(y)), (key, row, want[key])


def gradients_for(rows, seed):
    draw = random.Random(seed)
    return {k: [draw.randrange(-8, 9) / 4 for _ in row] for k, row in rows.items()}


def pull(client):
    """Pulls need no session and change nothing; what is absent reads as its initial value."""
    keys = some_keys(300, 1) + [(1 << 64) - 1]
    rows = client.pull(FEATURES, keys)
    assert len(rows) == 301
    assert 0 in client.pull(FEATURES, [0]), "any key is legal; this one is being trained"
    assert any(any(row) for row in rows.values()), "initial embeddings are drawn"
    assert client.pull(FEATURES, keys) == rows
    one = client.pull(FEATURES, keys[:1])
    assert one[keys[0]] == rows[keys[0]]
    assert client.pull(FEATURES, []) == {}


def push(client):
    """Gradients are applied once, however often they are sent."""
    keys = some_keys(100, 2)
    before = client.pull(FEATURES, keys)
    gradients = gradients_for(before, 3)
    request = client.push_request(FEATURES, gradients, some_task(2), 0, 4)
    other = client.header(session=secrets.randbits(64))
    stranger = client.push_request(FEATURES, gradients, some_task(2), 0, 4, header=other)
    expect(grpc.StatusCode.FAILED_PRECONDITION, lambda: client.data.Push(stranger), "session")
    client.open_session(session=other.session)
    expect(grpc.StatusCode.PERMISSION_DENIED, lambda: client.data.Push(stranger), "lanes")
    state = client.open_session().state
    assert state.generation == client.shards.generation
    reply = client.data.Push(request)
    assert not reply.repeated
    after = applied(before, gradients, 4)
    same(client.pull(FEATURES, keys), after)
    assert client.data.Push(request).repeated
    same(client.pull(FEATURES, keys), after)
    again = gradients_for(before, 4)
    client.push(FEATURES, again, some_task(2), 1, 1)
    same(client.pull(FEATURES, keys), applied(after, again, 1))


def codecs(client):
    """bf16 and int8 are what data.proto says, to the bit."""
    keys = some_keys(200, 5)
    client.open_session()
    before = client.pull(FEATURES, keys)
    client.push(FEATURES, gradients_for(before, 6), some_task(5), 0, 3)
    exact = client.pull(FEATURES, keys)
    halves = client.pull(FEATURES, keys, codec=data_pb2.VALUE_BF16)
    for key, row in exact.items():
        for x, y in zip(row, halves[key]):
            bits = struct.unpack("<I", struct.pack("<f", x))[0]
            low = bits & 0xFFFF
            want = bits >> 16
            want += low > 0x8000 or (low == 0x8000 and want & 1)
            assert struct.unpack("<I", struct.pack("<f", y))[0] == want << 16
    request = client.pull_request(FEATURES, keys, codec=data_pb2.VALUE_INT8)
    reply = client.data.Pull(request)
    small = client.read(request, reply, FEATURES, keys)
    size = sum(len(g.values) for g in reply.groups)
    dim = len(exact[keys[0]])
    assert size == len(keys) * (4 + dim)
    for key, row in exact.items():
        scale = max(abs(x) for x in row) / 127
        for x, y in zip(row, small[key]):
            assert abs(x - y) <= scale * 0.501, (x, y, scale)
    expect(grpc.StatusCode.INVALID_ARGUMENT,
           lambda: client.pull(FEATURES, keys, codec=7), "codec")


def tickets(client):
    """A ticket stands for keys in pushes and pulls; a wrong one is told as such."""
    keys = some_keys(150, 7)
    client.open_session()
    request = client.pull_request(FEATURES, keys, want_ticket=True)
    reply = client.data.Pull(request)
    before = client.read(request, reply, FEATURES, keys)
    ticket = reply.ticket
    assert ticket.number != 0 and ticket.keys == 150
    assert ticket.incarnation == reply.state.incarnation
    assert ticket.fingerprint == strata_client.fingerprint(request.groups)
    gradients = gradients_for(before, 8)
    by_ticket = client.push_request(FEATURES, gradients, some_task(7), 0, 2, ticket=ticket)
    with_keys = client.push_request(FEATURES, gradients, some_task(7), 0, 2)
    assert len(by_ticket.SerializeToString()) < len(with_keys.SerializeToString()) - 8 * 140
    assert not client.data.Push(by_ticket).repeated
    assert client.data.Push(with_keys).repeated
    after = applied(before, gradients, 2)
    same(client.pull(FEATURES, keys, groups=[], ticket=ticket), after)

    for change in ("number", "incarnation", "keys", "fingerprint"):
        wrong = data_pb2.Ticket()
        wrong.CopyFrom(ticket)
        setattr(wrong, change, getattr(wrong, change) + 1)
        for call in (lambda: client.pull(FEATURES, keys, groups=[], ticket=wrong),
                     lambda: client.push(FEATURES, gradients, some_task(7), 1, 2, ticket=wrong)):
            details = expect(grpc.StatusCode.FAILED_PRECONDITION, call)
            assert details.startswith("ticket "), details
    same(client.pull(FEATURES, keys), after)

    # The checksum binds the gradients to the keys that the ticket stands for.
    unbound = client.push_request(FEATURES, gradients, some_task(7), 1, 2, ticket=ticket)
    for group in unbound.contributions[0].groups:
        group.crc32c = strata_client.crc32c(group.values)
    expect(grpc.StatusCode.DATA_LOSS, lambda: client.data.Push(unbound))

    prefetch = client.data.Prefetch(data_pb2.PrefetchRequest(
        header=client.header(), shards=client.shard_numbers(),
        groups=client.key_groups(FEATURES, keys)))
    assert prefetch.ticket.number > ticket.number
    assert prefetch.ticket.fingerprint == ticket.fingerprint
    same(client.pull(FEATURES, keys, groups=[], ticket=prefetch.ticket), after)


def errors(client):
    """Status codes mean one thing each, and nothing is changed."""
    code = grpc.StatusCode
    keys = some_keys(50, 9)
    client.open_session()
    rows = client.pull(FEATURES, keys)

    def header(**changes):
        return lambda: client.pull(FEATURES, keys, header=client.header(**changes))

    expect(code.NOT_FOUND, header(job=client.shards.job + 1000), "job")
    expect(code.FAILED_PRECONDITION, header(map_epoch=client.shards.map_epoch + 1), "map_epoch")
    expect(code.FAILED_PRECONDITION, header(generation=client.shards.generation + 1), "generation")
    client.pull(FEATURES, keys, header=client.header(session=5))
    gradients = gradients_for(rows, 10)
    expect(code.FAILED_PRECONDITION,
           lambda: client.push(FEATURES, gradients, some_task(9), 0, 1,
                               header=client.header(session=client.session ^ 1)), "session")

    # A number names one work; its retry is fine, and a mark is another one.
    request = client.push_request(FEATURES, {}, some_task(10), 0, 1)
    assert not client.data.Push(request).repeated
    assert client.data.Push(request).repeated
    other = client.push_request(FEATURES, gradients, some_task(10), 1, 1)
    for number in (0, request.sequence):
        other.sequence = number
        expect(code.INVALID_ARGUMENT, lambda: client.data.Push(other),
               "push.sequence %d" % number)
        expect(code.INVALID_ARGUMENT, lambda: client.data.Mark(data_pb2.MarkRequest(
            header=client.header(), sequence=number, lane=0, cut=1 << 40)),
            "mark.sequence %d" % number)

    group = max(client.key_groups(FEATURES, keys), key=lambda g: len(g.keys))

    def changed(packed, crc):
        made = data_pb2.Group(table=group.table, shard=group.shard, keys=packed, crc32c=crc)
        return lambda: client.data.Pull(client.pull_request(FEATURES, keys, groups=[made]))

    backwards = group.keys[8:16] + group.keys[:8]
    expect(code.INVALID_ARGUMENT, changed(backwards, strata_client.crc32c(backwards)), "ascend")
    expect(code.INVALID_ARGUMENT, changed(group.keys[:-3], 0), "multiple of 8")
    expect(code.DATA_LOSS, changed(group.keys, group.crc32c ^ 1), "CRC32C")
    wrong_table = data_pb2.Group(table=99, shard=group.shard, keys=group.keys, crc32c=group.crc32c)
    expect(code.INVALID_ARGUMENT,
           lambda: client.data.Pull(client.pull_request(FEATURES, keys, groups=[wrong_table])),
           "table")

    request = client.pull_request(FEATURES, keys).SerializeToString()
    expect(code.INVALID_ARGUMENT, lambda: client.raw("Pull", request[:-1]), "PullRequest")
    message = client.push_request(FEATURES, gradients, some_task(9), 0, 1).SerializeToString()
    for cut in (1, 7, 40, len(message) // 2):
        expect(code.INVALID_ARGUMENT, lambda c=cut: client.raw("Push", message[:-c]))
    expect(code.INVALID_ARGUMENT, lambda: client.raw("Prefetch", b"\xff" * 30))

    # Noise of the most bytes that a message may have is read, and refused as noise; one more is not.
    incarnation = client.open_session().state.incarnation
    for method in ("Push", "Pull"):
        expect(code.INVALID_ARGUMENT, lambda: client.raw(method, bytes(strata_client.MOST)))
        expect(code.RESOURCE_EXHAUSTED, lambda: client.raw(method, bytes(strata_client.MOST + 1)))
    assert client.open_session().state.incarnation == incarnation, "the server was restarted"
    assert client.raw("Pull", request)
    assert client.pull(FEATURES, keys) == rows, "something was changed"


CASES = {f.__name__: f for f in (pull, push, codecs, tickets, errors)}

if __name__ == "__main__":
    CASES[sys.argv[3]](strata_client.Client(sys.argv[1], int(sys.argv[2])))
    print("case %s passed" % sys.argv[3])
