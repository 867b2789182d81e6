"""A client of the data plane in Python: Debian's gRPC and stubs made from proto/strata/*.proto.

Nothing here knows Strata's C++: it shows that the wire is plain protobuf over gRPC, and what a
client must do. Where a job's shards are, GetShards of the scheduler says; keys are routed by their
positions; a client that wants tickets introduces its session, and one that pushes has a session that
hosts lanes of the job.
"""

import struct
import time

import grpc

from proto.strata import control_pb2, control_pb2_grpc, data_pb2, data_pb2_grpc

MASK = (1 << 64) - 1
MOST = 64 << 20  # bytes of a message
OPTIONS = [("grpc.max_receive_message_length", MOST), ("grpc.max_send_message_length", MOST)]


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc32c_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def mix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def position(table, key):
    """Where a key of a hashed table lies."""
    return mix64(key ^ mix64(0x5354524154410000 + table))


def pack_keys(keys):
    return struct.pack("<%dQ" % len(keys), *keys)


def pack_floats(rows):
    return b"".join(struct.pack("<%df" % len(row), *row) for row in rows)


def round_trip(values):
    """Values as float32."""
    return list(struct.unpack("<%df" % len(values), struct.pack("<%df" % len(values), *values)))


def decode_rows(codec, data, keys):
    """Rows of a group of `keys` keys."""
    size = len(data) // keys if keys else 0
    rows = []
    for i in range(keys):
        row = data[i * size:(i + 1) * size]
        if codec == data_pb2.VALUE_FLOAT32:
            rows.append(list(struct.unpack("<%df" % (size // 4), row)))
        elif codec == data_pb2.VALUE_BF16:
            halves = struct.unpack("<%dH" % (size // 2), row)
            rows.append([struct.unpack("<f", struct.pack("<I", h << 16))[0] for h in halves])
        else:
            scale = struct.unpack("<f", row[:4])[0]
            steps = struct.unpack("<%db" % (size - 4), row[4:])
            rows.append(round_trip([s * scale for s in steps]))
    return rows


class Client:
    """One job of a cluster with one server."""

    def __init__(self, scheduler, job):
        control = control_pb2_grpc.SchedulerStub(grpc.insecure_channel(scheduler, OPTIONS))
        self.shards = control.GetShards(control_pb2.JobRef(job=job), timeout=10)
        self.channel = grpc.insecure_channel(self.shards.servers[0].data_address, OPTIONS)
        self.data = data_pb2_grpc.DataPlaneStub(self.channel)
        # Servers take pushes of sessions that host lanes alone: this client speaks for the worker
        # of the job, which stands still meanwhile. Numbers grow from one client to the next.
        nodes = control.GetCluster(control_pb2.GetClusterRequest(), timeout=10).nodes
        self.session = next(n.session for n in nodes
                            if n.role == control_pb2.WORKER and job in n.jobs)
        self.sequence = time.time_ns()
        partitions = self.shards.spec.spec.storage.partitions
        self.partition_shift = 64 - (partitions.bit_length() - 1)

    def header(self, **changes):
        fields = dict(job=self.shards.job, session=self.session,
                      generation=self.shards.generation, map_epoch=self.shards.map_epoch)
        fields.update(changes)
        return data_pb2.Header(**fields)

    def shard_numbers(self):
        return [s.place.shard for s in self.shards.shards]

    def route(self, table, keys):
        """{shard: keys by position}, of shards that have some."""
        routed = {}
        for key in sorted(keys, key=lambda k: position(table, k)):
            partition = position(table, key) >> self.partition_shift
            for s in self.shards.shards:
                if s.place.first_partition <= partition <= s.place.last_partition:
                    routed.setdefault(s.place.shard, []).append(key)
        return routed

    def key_groups(self, table, keys):
        groups = []
        for shard, mine in self.route(table, keys).items():
            packed = pack_keys(mine)
            groups.append(data_pb2.Group(table=table, shard=shard, keys=packed,
                                         crc32c=crc32c(packed)))
        return groups

    def open_session(self, **changes):
        return self.data.OpenSession(
            data_pb2.OpenSessionRequest(header=self.header(**changes),
                                        cluster_id=self.shards.cluster_id.encode(),
                                        job_uid=self.shards.job_uid.encode()),
            timeout=10)

    def pull_request(self, table, keys, **fields):
        fields.setdefault("header", self.header())
        fields.setdefault("groups", self.key_groups(table, keys))
        return data_pb2.PullRequest(shards=self.shard_numbers(), **fields)

    def read(self, request, reply, table, keys):
        """{key: row} of a reply, checked."""
        assert reply.outcome == data_pb2.SERVED, reply
        routed = list(self.route(table, keys).items())
        assert len(reply.groups) == len(routed)
        rows = {}
        for group, (shard, mine) in zip(reply.groups, routed):
            assert (group.table, group.shard) == (table, shard)
            assert not group.keys, "keys are not repeated"
            assert group.crc32c == crc32c(group.values), "checksum of a reply"
            rows.update(zip(mine, decode_rows(request.codec, group.values, len(mine))))
        return rows

    def pull(self, table, keys, **fields):
        request = self.pull_request(table, keys, **fields)
        reply = self.data.Pull(request, timeout=10)
        return self.read(request, reply, table, keys)

    def push_request(self, table, gradients, task, window, examples, ticket=None, **fields):
        """The sums of one window, {key: gradient}; with a ticket, without keys."""
        groups = []
        for shard, mine in self.route(table, gradients).items():
            packed, values = pack_keys(mine), pack_floats([gradients[k] for k in mine])
            groups.append(data_pb2.Group(table=table, shard=shard,
                                         keys=b"" if ticket else packed, values=values,
                                         crc32c=crc32c(packed + values)))
        contribution = data_pb2.Contribution(node_first=0, node_end=1, examples=examples,
                                             groups=groups, ticket=ticket)
        self.sequence += 1
        fields.setdefault("header", self.header())
        return data_pb2.PushRequest(sequence=self.sequence, task=task, window=window, lane=0,
                                    shards=self.shard_numbers(), contributions=[contribution],
                                    **fields)

    def push(self, *args, **fields):
        return self.data.Push(self.push_request(*args, **fields), timeout=10)

    def raw(self, method, message):
        """Sends any bytes, also more than MOST."""
        unbounded = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(self.shards.servers[0].data_address, unbounded) as channel:
            call = channel.unary_unary("/strata.DataPlane/" + method,
                                       request_serializer=lambda b: b,
                                       response_deserializer=lambda b: b)
            return call(message, timeout=60)


def fingerprint(groups):
    """Of a ticket for these groups."""
    text = b"".join(struct.pack("<4I", g.table, g.shard, len(g.keys) // 8, crc32c(g.keys))
                    for g in groups)
    return crc32c(text)
