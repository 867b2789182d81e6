"""Reads files as storage/FORMAT.md describes them, and knows nothing else of them.

usage: format_reader.py delta FILE | removals FILE | rowfile FOLDER

Prints what is in them, a line each, for format_test.cc to compare. Whatever is not as the document
says ends with an AssertionError. Uses the standard library only.
"""
import os
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


def main():
    what, path = sys.argv[1:]
    read = {"delta": delta, "removals": removals, "rowfile": lambda p: RowFile(p).read()}[what]
    print("\n".join(read(path)))


main()
