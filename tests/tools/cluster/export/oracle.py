"""Reads an export as anybody would, and predicts with it.

usage: oracle.py NPY_FOLDER SAFETENSORS_FOLDER DATA.libfm PREDICTIONS.csv

Checks that both formats hold the same bytes, that every checksum is right, and that lr or fm scores
computed here in double precision are those of `strata predict`. Uses the standard library, and
numpy's own reader where numpy is installed.
"""
import array
import ast
import json
import math
import os
import struct
import sys

CODES = {"uint64": "Q", "uint32": "I", "float32": "f", "U64": "Q", "U32": "I", "F32": "f"}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def make_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = make_table()


def read_npy(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", path
    (size,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + size].decode("latin1"))
    assert header["fortran_order"] is False
    assert (10 + size) % 64 == 0
    dtype = {"<u8": "uint64", "<u4": "uint32", "<f4": "float32"}[header["descr"]]
    return dtype, list(header["shape"]), data[10 + size:]


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    (size,) = struct.unpack_from("<Q", data, 0)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    arrays, end = {}, 0
    for name, a in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = a["data_offsets"]
        assert begin == end, "a hole before %s" % name
        end = stop
        arrays[name] = (a["dtype"], a["shape"], data[8 + size + begin:8 + size + stop])
    assert 8 + size + end == len(data), path
    return arrays


def check_array(entry, dtype, shape, data):
    assert entry["dtype"] == dtype and entry["shape"] == shape, entry["name"]
    count = 1
    for n in shape:
        count *= n
    assert len(data) == count * struct.calcsize("<" + CODES[dtype]) == entry["bytes"]
    assert "%08x" % crc32c(data) == entry["crc32c"], entry["name"]


def load_npy(folder):
    index = json.load(open(os.path.join(folder, "index.json")))
    arrays = {}
    for entry in index["arrays"]:
        path = os.path.join(folder, entry["file"])
        dtype, shape, data = read_npy(path)
        check_array(entry, dtype, shape, data)
        arrays[entry["name"]] = data
        try:
            import numpy
        except ImportError:
            continue
        loaded = numpy.load(path)
        assert list(loaded.shape) == shape and loaded.tobytes() == data
    named = {entry["file"] for entry in index["arrays"]} | {"index.json"}
    assert set(os.listdir(folder)) == named, os.listdir(folder)
    return index, arrays


def load_safetensors(folder):
    index = json.load(open(os.path.join(folder, "model.safetensors.index.json")))
    entries = {e["name"]: e for e in index["metadata"]["strata"]["arrays"]}
    files = {name: read_safetensors(os.path.join(folder, name))
             for name in set(index["weight_map"].values())}
    total, arrays = 0, {}
    for name, file in index["weight_map"].items():
        dtype, shape, data = files[file].pop(name)
        check_array(entries[name], dtype, shape, data)
        arrays[name] = data
        total += len(data)
    assert not any(files.values()), "arrays that the index does not name"
    assert total == index["metadata"]["total_size"]
    return index["metadata"]["strata"], arrays


def join_parts(index, arrays):
    """Arrays under the names that they have in an export with one part."""
    joined = {}
    for table in index["tables"]:
        if table["kind"] == "dense":
            for tensor in table["tensors"]:
                for name in tensor["arrays"]:
                    joined[name] = arrays[name]
            continue
        for part in table["parts"]:
            for name in part["arrays"]:
                words = name.split(".")
                if words[1].startswith("part-"):
                    del words[1]
                plain = ".".join(words)
                joined[plain] = joined.get(plain, b"") + arrays[name]
    return joined


def unpack(data, code):
    values = array.array(code)
    values.frombytes(data)
    return values


def scores(index, arrays, data_path):
    keys = list(unpack(arrays["features.keys"], "Q"))
    assert len(set(keys)) == len(keys)
    row_of = {key: row for row, key in enumerate(keys)}
    weight = unpack(arrays["features.weight"], "f")
    bias = unpack(arrays["bias"], "f")[0]
    dim = 0
    if index["model"] == "fm":
        embedding = unpack(arrays["features.embedding"], "f")
        dim = len(embedding) // len(keys)
    for line in open(data_path):
        logit = bias
        sums, squares = [0.0] * dim, [0.0] * dim
        for word in line.split()[1:]:
            key, value = word.split(":")
            row, x = row_of[int(key)], float(value)
            logit += weight[row] * x
            for k in range(dim):
                v = embedding[row * dim + k] * x
                sums[k] += v
                squares[k] += v * v
        logit += 0.5 * sum(s * s - q for s, q in zip(sums, squares))
        yield 1 / (1 + math.exp(-logit))


def main():
    npy, safetensors, data, predictions = sys.argv[1:]
    index, arrays = load_npy(npy)
    other_index, parts = load_safetensors(safetensors)
    assert join_parts(other_index, parts) == arrays, "the formats differ"
    for key in ("job", "step", "modelHash", "model", "seed", "hashSeed"):
        assert index[key] == other_index[key]
    lines = open(predictions).read().split()
    count, worst = 0, 0.0
    for score in scores(index, arrays, data):
        worst = max(worst, abs(score - float(lines[count].split(",")[1])))
        count += 1
    assert count == len(lines) and count > 0
    assert worst < 2e-6, "scores differ by %g" % worst
    print("ok %d scores, worst %g" % (count, worst))


main()
