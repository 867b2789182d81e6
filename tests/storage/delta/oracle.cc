#include "tests/storage/delta/oracle.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "proto/core/checksum.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"

namespace strata::storage {
namespace {

absl::Status Broken(const char* what) { return absl::InternalError(what); }

std::vector<uint8_t> Block(DeltaBlockHead head, const std::vector<uint8_t>& payload,
                           uint64_t offset) {
  std::vector<uint8_t> out(kDeltaBlockHead);
  head.payload = payload.size();
  head.offset = offset;
  EncodeDeltaBlockHead(head, payload, out.data());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

}  // namespace

absl::Status ReadWholeDelta(std::span<const uint8_t> bytes) {
  const auto source = [bytes](uint64_t offset, std::span<uint8_t> out) -> absl::Status {
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      return Broken("read beyond the end");
    }
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    return absl::OkStatus();
  };
  auto reader = DeltaReader::From(source, bytes.size(), "delta");
  if (!reader.ok()) return reader.status();
  const DeltaHeader& header = (*reader)->header();
  const std::vector<uint8_t> again = EncodeDeltaHeader(header);
  if (again.size() > bytes.size()) return Broken("a header that is longer than the file");
  std::map<std::pair<uint32_t, bool>, std::set<uint64_t>> seen;
  uint64_t upserts = 0, deletes = 0;
  DeltaBlock block;
  for (;;) {
    auto more = (*reader)->Next(block);
    if (!more.ok()) return more.status();
    if (!*more) break;
    const bool is_upsert = block.type == DeltaBlockType::kUpserts;
    const DeltaTable* table = header.Find(block.table);
    if (table == nullptr || block.keys.empty()) return Broken("a block of nothing");
    if (is_upsert != (block.rows != nullptr)) return Broken("rows where there are none");
    uint64_t sum = 0;  // touches every byte of the rows
    for (size_t i = 0; is_upsert && i < block.keys.size() * header.row_bytes(*table); ++i) {
      sum += block.rows[i];
    }
    if (sum > ~uint64_t{0} / 2) return Broken("cannot be");
    for (const uint64_t key : block.keys) {
      if (!seen[{block.table.value, is_upsert}].insert(key).second) return Broken("a key twice");
    }
    (is_upsert ? upserts : deletes) += block.keys.size();
  }
  const DeltaSummary want = {upserts, deletes, bytes.size()};
  return (*reader)->summary() == want ? absl::OkStatus() : Broken("wrong counts");
}

void MendChecksums(std::vector<uint8_t>& bytes) {
  const auto put = [&](size_t at, uint32_t crc) { std::memcpy(&bytes[at], &crc, 4); };
  const std::span<const uint8_t> all(bytes);
  const auto size = DeltaHeaderBytes(all.first(std::min(all.size(), kDeltaFixedBytes)));
  if (!size || *size > bytes.size()) return;
  put(*size - 4, Crc32c(all.first(*size - 4)));
  for (size_t at = *size; bytes.size() - at >= kDeltaBlockHead;) {
    const std::span<const uint8_t, kDeltaBlockHead> head(&bytes[at], kDeltaBlockHead);
    const auto parsed = ParseDeltaBlockHead(head);
    if (!parsed || parsed->payload > bytes.size() - at - kDeltaBlockHead) return;
    put(at + kDeltaBlockHead - 4,
        DeltaBlockCrc(head, all.subspan(at + kDeltaBlockHead, parsed->payload)));
    at += kDeltaBlockHead + parsed->payload;
  }
}

std::vector<uint8_t> SmallDelta(uint64_t seed) {
  std::mt19937_64 random(seed);
  DeltaHeader header;
  header.from = {random(), {random(), random()}};
  header.to = {random(), {random(), random()}};
  header.with_state = random() % 2 == 0;
  header.tables = {{TableId(0), TableKind::kHashed, 2, 1}, {TableId(1), TableKind::kDense, 3, 0}};
  std::vector<uint8_t> out = EncodeDeltaHeader(header);
  uint64_t counts[2] = {0, 0};
  for (const DeltaTable& table : header.tables) {
    for (const DeltaBlockType type : {DeltaBlockType::kUpserts, DeltaBlockType::kDeletes}) {
      const bool upserts = type == DeltaBlockType::kUpserts;
      std::vector<std::pair<Position, uint64_t>> keys;
      for (uint64_t i = 0, n = 1 + random() % 4; i < n; ++i) {
        const uint64_t key = i == 0 ? 0 : i == 1 ? ~uint64_t{0} : random();
        keys.push_back({table.kind == TableKind::kDense ? Position(key)
                                                        : PositionOf(Key(key), TableSalt(table.id)),
                        key});
      }
      std::sort(keys.begin(), keys.end());
      std::vector<uint8_t> payload(keys.size() * 8);
      for (size_t i = 0; i < keys.size(); ++i) std::memcpy(&payload[i * 8], &keys[i].second, 8);
      if (upserts) payload.resize(payload.size() + keys.size() * header.row_bytes(table), 7);
      DeltaBlockHead head;
      head.type = type;
      head.table = table.id.value;
      head.count = keys.size();
      counts[upserts ? 0 : 1] += keys.size();
      const auto block = Block(head, payload, out.size());
      out.insert(out.end(), block.begin(), block.end());
    }
  }
  std::vector<uint8_t> end(16);
  std::memcpy(end.data(), counts, 16);
  const auto block = Block({}, end, out.size());
  out.insert(out.end(), block.begin(), block.end());
  return out;
}

}  // namespace strata::storage
