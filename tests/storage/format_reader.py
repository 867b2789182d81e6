"""Reads files as storage/FORMAT.md describes them, and knows nothing else of them.

usage: format_reader.py delta FILE | removals FILE | rowfile FOLDER | image FILE | checkpoint FOLDER

Prints what is in them, a line each, for format_test.cc and tests/tools/cluster/checkpoint/format_test.cc to compare.
Whatever is not as the document says ends with an AssertionError. Uses the standard library, and for
model hashes the xxHash library.
"""
import ctypes
import json
import os
import re
import struct
import sys

MASK = 2**64 - 1


def make_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = make_table()


def crc32c(*pieces):
    crc, table = 0xFFFFFFFF, TABLE
    for piece in pieces:
        for byte in piece:
            crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def position_of(key, table, kind):
    return key if kind == 1 else mix64(key ^ mix64(0x5354524154410000 + table))


class Fields:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def u16(self):
        return self.take("H")

    def u32(self):
        return self.take("I")

    def u64(self):
        return self.take("Q")

    def bytes(self, count):
        if self.at + count > len(self.data):
            raise struct.error("cut off")
        self.at += count
        return self.data[self.at - count:self.at]


def read_delta_header(data):
    f = Fields(data)
    assert f.bytes(8) == b"STRADELT"
    assert f.u32() == 1
    header = {"flags": f.u32()}
    for point in ("from", "to"):
        header[point] = (f.u64(), f.u64(), f.u64())  # step, low, high
    count = f.u32()
    assert count <= 1024 and f.bytes(12) == bytes(12)
    assert f.at == 80
    header["tables"] = {}
    last = -1
    for _ in range(count):
        table, kind, dim, state = f.u32(), f.u32(), f.u32(), f.u32()
        assert table > last and kind in (0, 1) and dim >= 1
        last = table
        header["tables"][table] = (kind, dim, state)
    assert f.u32() == 0
    assert f.u32() == crc32c(data[:84 + 16 * count])
    return header, 88 + 16 * count


def read_delta(data, lines, removals):
    """One delta at the beginning of `data`; returns its bytes. struct.error: cut off."""
    header, at = read_delta_header(data)
    flags = header["flags"]
    assert (flags == 8) == removals and flags < 16
    if flags & 2:
        assert header["from"] == (0, 0, 0)
    if removals:
        assert header["from"] == (header["to"][0] - 1, 0, 0) and header["to"][1:] == (0, 0)
    else:
        lines.append("flags %d from %d %x %x to %d %x %x" %
                     ((flags,) + header["from"] + header["to"]))
    counts = {1: 0, 2: 0}
    last = {}
    while True:
        f = Fields(data, at)
        magic = struct.unpack_from("<4s", data, at)[0]
        assert magic == b"DBLK"
        f.at += 4
        kind, table, count, payload = f.u32(), f.u32(), f.u64(), f.u64()
        offset, crc = f.u64(), f.u32()
        assert f.at == at + 40 and offset == at
        struct.unpack_from("%dx" % payload, data, f.at)  # is there
        body = Fields(data[f.at:f.at + payload])
        assert crc == crc32c(data[at:at + 36], body.data)
        at = f.at + payload
        if kind == 3:
            assert (table, count, payload) == (0, 0, 16)
            assert (body.u64(), body.u64()) == (counts[1], counts[2])
            return at
        table_kind, dim, state = header["tables"][table]
        row = 0 if kind == 2 else 4 * dim + (4 * state + 8 if flags & 1 else 0)
        assert kind in (1, 2) and count >= 1 and payload == count * (8 + row)
        assert payload <= 2**18 + 8 + row
        counts[kind] += count
        keys = [body.u64() for _ in range(count)]
        for key in keys:
            position = position_of(key, table, table_kind)
            assert position > last.get((table, kind), -1), "order"
            last[table, kind] = position
            if kind == 1:
                lines.append("put %d %d %s" % (table, key, body.bytes(row).hex()))
            elif removals:
                lines.append("remove %d %d %d" % (table, key, header["to"][0]))
            else:
                lines.append("remove %d %d" % (table, key))


def delta(path):
    data = open(path, "rb").read()
    lines = []
    assert read_delta(data, lines, removals=False) == len(data)
    return lines


def removals(path):
    name = os.path.basename(path)
    words = name[:-len(".strata")].split("-")
    assert words[0] == "removed" and [len(w) for w in words[1:]] == [5, 12, 5], name
    data = open(path, "rb").read()
    lines = ["generation %d from %d shard %d" % tuple(int(w) for w in words[1:])]
    while data:
        read = []
        try:
            size = read_delta(data, read, removals=True)
        except struct.error:  # the file's end cuts it off
            break
        lines += read
        data = data[size:]
    return lines


def block_shape(r):
    def most(pages):
        n = min(65535, 4096 * pages // (8 + r))
        while n and used(n) > 4096 * pages:
            n -= 1
        return n

    def used(n):
        return 8 + (n + 7) // 8 + n * (8 + r)

    for pages in range(1, 17):
        if most(pages) and 5 * used(most(pages)) >= 4 * 4096 * pages:
            return 4096 * pages, most(pages)
    pages = max(range(1, 17), key=lambda p: (most(p) * r / p, -p))
    while most(pages) == 0:
        pages += 1
    return 4096 * pages, most(pages)


def may_have(bits_of, f, position):
    h = position * 0x9E3779B97F4A7C15 & MASK
    h ^= h >> 32
    low, step = h & 0xFFFFFFFF, h >> 32 | 1
    for i in range(min(max(69 * f // 100, 1), 12)):
        j = ((low + i * step) % 2**32) * (8 * len(bits_of)) >> 32
        if not bits_of[j // 8] >> (j % 8) & 1:
            return False
    return True


class RowFile:
    def __init__(self, folder):
        assert set(os.listdir(folder)) == {"LOCK", "ROWS", "MANIFEST"}
        self.rows = open(os.path.join(folder, "ROWS"), "rb").read()
        self.manifest = open(os.path.join(folder, "MANIFEST"), "rb").read()
        self.owned = set()

    def place(self, f):
        place = {"number": f.u64(), "index": f.u64(), "bytes": f.u64(), "level": f.u32()}
        pieces = []
        for _ in range(f.u32()):
            first, count = f.u32(), f.u32()
            for chunk in range(first, first + count):
                assert chunk not in self.owned, "a chunk with two owners"
                self.owned.add(chunk)
            pieces.append(self.rows[16384 * first:16384 * (first + count)])
        place["data"] = b"".join(pieces)
        return place

    def extent(self, place, first, end):
        """{(table, position): row or None} of an extent of the range [first, end)."""
        data, index = place["data"], place["index"]
        assert index % 4096 == 0
        f = Fields(data[index:index + place["bytes"]])
        assert f.u32() == crc32c(f.data[4:])
        assert not any(data[index + place["bytes"]:(index + place["bytes"] + 4095) // 4096 * 4096])
        found, number, behind, last_table = {}, 0, 0, -1
        for _ in range(f.u32()):
            table, r, bits, first_block = f.u32(), f.u32(), f.u32(), f.u32()
            offset, rows, blocks = f.u64(), f.u64(), f.u64()
            b, n = block_shape(r)
            assert table > last_table and 1 <= bits <= 16 and blocks >= 1
            assert first_block == number and offset == behind
            last_table = table
            fences = [f.u64() for _ in range(blocks)]
            filters = [f.bytes((n * bits + 7) // 8) for _ in range(blocks)]
            last = -1
            for k in range(blocks):
                block = Fields(data[offset + k * b:offset + (k + 1) * b])
                crc = block.u32()
                assert crc == crc32c(struct.pack("<QI", place["number"], number), block.data[4:])
                m = block.u16()
                assert m <= n and block.u16() == 0
                deleted = block.bytes((n + 7) // 8)
                positions = [block.u64() for _ in range(n)]
                assert positions[0] == fences[k] and not any(positions[m:])
                for i in range(n):
                    row = block.bytes(r)
                    if i >= m:
                        assert not any(row)
                        continue
                    key = (table, positions[i])
                    assert positions[i] > last and first <= key and (end is None or key < end)
                    assert may_have(filters[k], bits, positions[i])
                    last = positions[i]
                    gone = deleted[i // 8] >> (i % 8) & 1
                    assert not gone or not any(row)
                    found[key] = None if gone else row
                assert not any(block.data[block.at:])
                number += 1
            rows -= sum(1 for key in found if key[0] == table)
            assert rows == 0
            behind = offset + blocks * b
        assert behind == index and f.at == len(f.data)
        return found

    def read(self):
        f = Fields(self.manifest)
        assert f.bytes(8) == b"TRATROW1"
        next_extent, partitions, count = f.u64(), f.u32(), f.u32()
        assert f.u32() == 0 and partitions & (partitions - 1) == 0
        assert f.u32() == crc32c(self.manifest[:28], self.manifest[32:])
        ranges = []
        for _ in range(count):
            position, table = f.u64(), f.u32()
            has_base = f.u32()
            assert has_base in (0, 1)
            base = self.place(f) if has_base else None
            ranges.append(((table, position), base, [self.place(f) for _ in range(f.u32())]))
        assert f.at == len(self.manifest)
        assert ranges[0][0] == (0, 0)
        rows, shapes = {}, [count, 0, 0]
        for i, (first, base, deltas) in enumerate(ranges):
            end = ranges[i + 1][0] if i + 1 < count else None
            for place in ([base] if base else []) + deltas:
                assert place["number"] < next_extent
                shapes[1 if place is base else 2] += 1
                found = self.extent(place, first, end)
                assert place is not base or None not in found.values()
                rows.update(found)
        sys.stderr.write("%d ranges, %d bases, %d deltas\n" % tuple(shapes))
        return ["row %d %d %s" % (key + (rows[key].hex(),)) for key in sorted(rows)
                if rows[key] is not None]


def unmix64(x):
    """The inverse of mix64."""
    x ^= x >> 31 ^ x >> 62
    x = x * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    x ^= x >> 27 ^ x >> 54
    x = x * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    return x ^ x >> 30 ^ x >> 60


def key_at(position, table, kind):
    key = position if kind == 1 else unmix64(position) ^ mix64(0x5354524154410000 + table)
    assert position_of(key, table, kind) == position
    return key


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def hash_row(table, key, row):
    function = ctypes.CDLL("libxxhash.so.0").XXH3_128bits_withSeed
    function.restype = Hash128
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    data = struct.pack("<IQ", table, key) + row
    found = function(data, len(data), 0x5354524154410001)
    return found.high << 64 | found.low


class ShardFile:
    """A base image, checkpoint file or increment."""

    def __init__(self, path):
        self.data = data = open(path, "rb").read()
        trailer = Fields(data[-32:])
        assert trailer.bytes(8) == b"SSTRAEND"
        footer, size = trailer.u64(), trailer.u64()
        assert size == len(data) and trailer.u32() == 0
        assert trailer.u32() == crc32c(data[-32:-4])
        at = self.read_header()
        self.index, self.sections = [], []
        self.rows, self.images, self.erased = {}, {}, {}  # by table, then position
        for table in self.tables:
            self.rows[table], self.images[table], self.erased[table] = {}, {}, {}
        while at < footer:
            at = self.read_block(at)
        assert at == footer
        assert self.read_footer(footer) == len(data) - 32

    def read_header(self):
        f = Fields(self.data)
        assert f.bytes(8) == b"STRASHRD" and f.u32() == 2
        self.kind, self.job, self.generation = f.u32(), f.u64(), f.u64()
        self.clock, self.after, self.shard = f.u64(), f.u64(), f.u32()
        self.partitions, self.first, self.last = f.u32(), f.u32(), f.u32()
        assert self.kind in (1, 2, 3) and (self.kind != 2 or self.after == 0)
        assert self.partitions & (self.partitions - 1) == 0
        assert self.first <= self.last < self.partitions <= 2**20
        count = f.u32()
        assert count <= 65536 and f.u32() == 0
        self.writer = ["%016x%016x" % (f.u64(), f.u64()) for _ in range(2)] + [self.generation]
        self.cut, self.base_cut, self.map_epoch = f.u64(), f.u64(), f.u64()
        assert f.bytes(32) == bytes(32) and f.at == 160
        assert self.kind != 1 or (self.cut, self.base_cut) == (0, 0)
        assert self.kind != 2 or self.base_cut == 0
        self.writer.append(self.cut)
        self.tables = {}
        for _ in range(count):
            table, kind, dim, state = f.u32(), f.u32(), f.u32(), f.u32()
            assert kind in (0, 1) and table > max(self.tables, default=-1)
            self.tables[table] = (kind, dim, state)
        assert f.u32() == 0 and f.at == 164 + 16 * count
        self.header_crc = f.u32()
        assert self.header_crc == crc32c(self.data[:164 + 16 * count])
        return f.at

    def partition(self, position):
        bits = self.partitions.bit_length() - 1
        return position >> 64 - bits if bits else 0

    def block(self, at):
        f = Fields(self.data, at)
        assert f.bytes(4) == b"SBLK"
        block = dict(type=f.u32(), of=f.u32(), first=f.u32(), last=f.u32())
        assert f.u32() == 0
        block.update(count=f.u64(), bytes=f.u64(), offset=f.u64())
        assert f.u32() == 0 and block["offset"] == at
        block["crc"] = f.u32()
        payload = f.bytes(block["bytes"])
        padding = f.bytes(-block["bytes"] % 8)
        assert not any(padding)
        assert block["crc"] == crc32c(self.data[at:at + 52], payload, padding)
        return block, Fields(payload), f.at

    def read_block(self, at):
        block, body, end = self.block(at)
        kind, count = block["type"], block["count"]
        assert self.first <= block["first"] <= block["last"] <= self.last
        places = (0, 0)
        if kind == 2:
            assert count == 1
            self.sections.append((block["of"], block["first"], block["last"], body.data))
        else:
            _, dim, state = self.tables[block["of"]]
            into, size = {1: (self.rows, 4 * (dim + state) + 8), 3: (self.images, 4 * dim),
                          5: (self.erased, 0)}[kind]
            assert (kind != 3 or self.kind == 1) and (kind != 5 or self.kind == 3)
            into = into[block["of"]]
            assert count >= 1 and block["bytes"] == count * (8 + size)
            positions = [body.u64() for _ in range(count)]
            for position in positions:
                assert position > max(next(reversed(into), -1), -1), "order"
                assert block["first"] <= self.partition(position) <= block["last"]
                into[position] = body.bytes(size)
            places = (positions[0], positions[-1])
            assert self.partition(places[0]) == block["first"]
            assert self.partition(places[1]) == block["last"]
        self.index.append((kind, block["of"], block["first"], block["last"], count, block["bytes"],
                           at) + places + (block["crc"],))
        return end

    def read_footer(self, at):
        block, body, end = self.block(at)
        assert block["type"] == 4 and block["of"] == 0 and block["count"] == len(self.index)
        for entry in self.index:
            assert entry == tuple(body.take(code) for code in "IIIIQQQQQI")
            assert body.u32() == 0
        for table in self.tables:
            assert body.u64() == len(self.rows[table])
        total = body.u64() | body.u64() << 64
        assert total == self.hash(self.rows)
        assert body.u32() == self.header_crc and body.u32() == 0
        assert body.at == len(body.data)
        return end

    def hash(self, rows):
        return sum(hash_row(table, key_at(position, table, self.tables[table][0]), row)
                   for table in rows for position, row in rows[table].items()) % 2**128

    def section(self, number):
        """The bytes of the only one of its type; None where there is none."""
        found = [s for s in self.sections if s[0] == number]
        assert len(found) <= 1
        if not found:
            return None
        assert found[0][1:3] == (self.first, self.last)
        return Fields(found[0][3])

    def check_ledger(self):
        """Section 1; returns what stands in section 2."""
        f = self.section(1)
        closed, recorded, last, windows = f.u64(), f.u64(), -1, 0
        for _ in range(f.u64()):
            task, missing, beyond = f.u64(), f.u64(), [f.u64() for _ in range(f.u64())]
            assert task > last and task >= closed
            assert beyond == sorted(set(beyond)) and all(w > missing for w in beyond)
            last = task
            windows += missing + len(beyond)
        assert f.at == len(f.data) and recorded >= windows
        f = self.section(2)
        applied, cut = f.u64(), f.u64()
        assert f.at == len(f.data)
        return applied, cut

    def check_filters(self):
        """Sections 5; returns how many keys wait for a row."""
        waiting, seen = 0, set()
        for number, first, last, data in self.sections:
            if number != 5:
                continue
            f = Fields(data)
            table, kind = f.u32(), f.u32()
            assert first == last and (table, first) not in seen and table in self.tables
            seen.add((table, first))
            assert kind in (1, 2)
            if kind == 2:
                assert (len(data) - 16) % 4 == 0
                continue
            before = -1
            while f.at < len(data):
                position, steps = f.u64(), f.u64()
                assert position > before and self.partition(position) == first and steps >= 1
                assert position not in self.rows[table]
                before = position
                waiting += 1
        return waiting


def image(path):
    file = ShardFile(path)
    assert file.kind == 1
    lines = ["job %d generation %d shard %d partitions %d %d of %d" %
             (file.job, file.generation, file.shard, file.first, file.last, file.partitions)]
    lines.append("clock %d log from %d" % (file.clock, file.after))
    oldest = file.section(3)
    lines.append("serves from %d" % oldest.u64())
    lines.append("waiting %d" % file.check_filters())
    lines.append("hash %032x" % file.hash(file.rows))
    for what, of in (("row", file.rows), ("before", file.images)):
        for table in of:
            lines += ["%s %d %d %s" % (what, table, p, of[table][p].hex()) for p in of[table]]
    return lines


def read_manifest(folder):
    text = open(os.path.join(folder, "MANIFEST.json"), "rb").read()
    line, check, end = text.split(b"\n")
    assert end == b"" and check == b"crc32c %08x" % crc32c(line)
    return json.loads(line)


def add_file(folder, entry, chain):
    """A file of the manifest, onto those of its shard before it; None: it is the first."""
    path = os.path.join(folder, entry["name"])
    file = ShardFile(path)
    number = int(entry.get("sequence", 0))
    name = "shard-%05d" % file.shard + (".%d" % number if number else "")
    of = name + "-g%d-c%d" % (file.generation, file.cut)
    link = re.fullmatch(re.escape(of) + r"(-l(\d+))?\.strata", entry["name"])
    # A link names the cut that made it, which is a later one.
    assert link and (link[1] is None or int(link[2]) > file.cut)
    assert file.writer == [entry["clusterId"], entry["jobUid"], int(entry["generation"]),
                           int(entry["cut"])]
    assert int(entry["bytes"]) == len(file.data) and int(entry["crc32c"]) == crc32c(file.data)
    assert int(entry.get("firstPartition", 0)) == file.first
    assert int(entry["lastPartition"]) == file.last
    rows = sum(len(r) for r in file.rows.values())
    assert int(entry.get("rows", 0)) == rows
    if chain is None:
        assert number == 0 and file.kind == 2
        whole, before, rows_before = file, 0, 0
    else:
        whole = chain
        assert file.kind == 3 and number == whole.number + 1 and file.after == whole.clock
        assert file.tables == whole.tables and file.partitions == whole.partitions
        assert (file.job, file.writer[:3]) == (whole.job, whole.writer[:3])
        assert file.base_cut == whole.cut
        before = whole.hash(whole.rows)
        rows_before = sum(len(r) for r in whole.rows.values())
        for table, erased in file.erased.items():
            assert not erased.keys() & file.rows[table].keys()
            for position in erased:
                whole.rows[table].pop(position, None)
            whole.rows[table].update(file.rows[table])
        counts = file.section(4)
        assert [counts.u64() for _ in file.tables] == [len(whole.rows[t]) for t in file.tables]
        whole.sections, whole.clock = file.sections, file.clock
        whole.writer, whole.cut = file.writer, file.cut
    whole.number = number
    change = (whole.hash(whole.rows) - before) % 2**128
    assert int(entry.get("hashLow", 0)) | int(entry.get("hashHigh", 0)) << 64 == change
    rows_now = sum(len(r) for r in whole.rows.values())
    assert int(entry.get("rowChange", 0)) == rows_now - rows_before
    return whole


def checkpoint(folder):
    """Checks it whole; the model hash is computed from its rows."""
    manifest = read_manifest(folder)
    step = int(manifest["step"])
    name = os.path.basename(folder.rstrip("/"))
    assert name == "step-%012d" % step
    shards, last = {}, 0
    for entry in sorted(manifest["files"], key=lambda e: int(e.get("sequence", 0))):
        place = (int(entry.get("firstPartition", 0)), int(entry["lastPartition"]))
        shards[place] = add_file(folder, entry, shards.get(place))
        last = max(last, int(entry.get("sequence", 0)))
    assert manifest["format"] == 4
    assert {e["name"] for e in manifest["files"]} | {"MANIFEST.json"} == set(os.listdir(folder))
    partition, total, rows, waiting = 0, step, 0, 0
    for place in sorted(shards):
        file = shards[place]
        assert place[0] == partition and file.clock == step
        assert file.writer == [manifest["clusterId"], manifest["jobUid"],
                               int(manifest["generation"]), int(manifest["cut"])]
        assert file.partitions == int(manifest["partitions"])
        partition = place[1] + 1
        total += file.hash(file.rows)
        rows += sum(len(r) for r in file.rows.values())
        waiting += file.check_filters()
        if manifest["job"]["spec"]["training"]["mode"] != "bsp":
            assert file.check_ledger()[1] < step
    assert partition == int(manifest["partitions"])
    model_hash = "%032x" % (total % 2**128)
    assert manifest["modelHash"] == model_hash
    return ["step %d files %d last increment %d" % (step, len(manifest["files"]), last),
            "model hash " + model_hash, "rows %d waiting %d" % (rows, waiting)]


def main():
    what, path = sys.argv[1:]
    read = {"delta": delta, "removals": removals, "rowfile": lambda p: RowFile(p).read(),
            "image": image, "checkpoint": checkpoint}[what]
    print("\n".join(read(path)))


main()
