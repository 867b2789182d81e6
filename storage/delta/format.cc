#include "storage/delta/format.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "storage/io/byte_codec.h"

namespace strata::storage {
namespace {

constexpr char kMagic[] = "STRADELT";
constexpr char kBlockMagic[] = "DBLK";
constexpr uint32_t kWithState = 1;
constexpr uint32_t kWhole = 2;
constexpr uint32_t kAllTables = 4;
constexpr uint32_t kRemovals = 8;
constexpr size_t kTablesAt = 80;  // in a header; behind them come 8 bytes

// No value: no table stands there behind the one before.
std::optional<DeltaTable> ReadTable(FieldReader& r, const DeltaTable* before) {
  DeltaTable t;
  t.id = TableId(r.U32());
  const uint32_t kind = r.U32();
  t.kind = static_cast<TableKind>(kind);
  t.dim = r.U32();
  t.state_floats = r.U32();
  if (kind > 1 || t.dim == 0 || (before != nullptr && !(before->id < t.id))) return {};
  return t;
}

}  // namespace

const DeltaTable* DeltaHeader::Find(TableId id) const {
  for (const DeltaTable& t : tables) {
    if (t.id == id) return &t;
  }
  return nullptr;
}

std::vector<uint8_t> EncodeDeltaHeader(const DeltaHeader& header) {
  std::vector<uint8_t> out(kDeltaFixedBytes + header.tables.size() * kDeltaTableBytes);
  std::memcpy(out.data(), kMagic, 8);
  FieldWriter w(out.data() + 8);
  w.U32(kDeltaVersion);
  w.U32((header.with_state ? kWithState : 0) | (header.whole ? kWhole : 0) |
        (header.all_tables ? kAllTables : 0) | (header.removals ? kRemovals : 0));
  for (const DeltaPoint* p : {&header.from, &header.to}) {
    w.U64(p->step);
    w.U64(p->hash.low);
    w.U64(p->hash.high);
  }
  w.U32(static_cast<uint32_t>(header.tables.size()));
  w.U32(0);
  w.U64(0);
  for (const DeltaTable& t : header.tables) {
    w.U32(t.id.value);
    w.U32(static_cast<uint32_t>(t.kind));
    w.U32(t.dim);
    w.U32(t.state_floats);
  }
  w.U32(0);
  w.U32(Crc32c(std::span(out).first(out.size() - 4)));
  return out;
}

std::optional<size_t> DeltaHeaderBytes(std::span<const uint8_t> fixed) {
  if (fixed.size() < kDeltaFixedBytes || std::memcmp(fixed.data(), kMagic, 8) != 0) return {};
  const uint32_t tables = FieldReader(fixed.data() + 64).U32();
  if (tables > kDeltaMostTables) return {};
  return kDeltaFixedBytes + tables * kDeltaTableBytes;
}

bool MayBeginDeltaHeader(std::span<const uint8_t> bytes) {
  const auto size = DeltaHeaderBytes(bytes);
  if (!size) return false;
  const size_t tables = (*size - kDeltaFixedBytes) / kDeltaTableBytes;
  FieldReader r(bytes.data() + kTablesAt);
  std::optional<DeltaTable> before;
  for (size_t i = 0; i < tables && kTablesAt + (i + 1) * kDeltaTableBytes <= bytes.size(); ++i) {
    before = ReadTable(r, before ? &*before : nullptr);
    if (!before) return false;
  }
  return true;
}

absl::StatusOr<DeltaHeader> ParseDeltaHeader(std::span<const uint8_t> bytes) {
  const auto bad = [](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(what...));
  };
  const auto size = DeltaHeaderBytes(bytes);
  if (!size || *size != bytes.size()) return bad("this is no delta");
  if (FieldReader(bytes.data() + bytes.size() - 4).U32() != Crc32c(bytes.first(*size - 4))) {
    return bad("the header's checksum is wrong");
  }
  FieldReader r(bytes.data() + 8);
  if (const uint32_t version = r.U32(); version != kDeltaVersion) {
    return bad("version ", version, "; this program reads ", kDeltaVersion);
  }
  DeltaHeader header;
  const uint32_t flags = r.U32();
  if (flags > (kWithState | kWhole | kAllTables | kRemovals)) return bad("unknown flags ", flags);
  header.with_state = flags & kWithState;
  header.whole = flags & kWhole;
  header.all_tables = flags & kAllTables;
  header.removals = flags & kRemovals;
  for (DeltaPoint* p : {&header.from, &header.to}) {
    p->step = r.U64();
    p->hash.low = r.U64();
    p->hash.high = r.U64();
  }
  const uint32_t tables = r.U32();
  r.U32();
  r.U64();
  for (uint32_t i = 0; i < tables; ++i) {
    const auto t = ReadTable(r, header.tables.empty() ? nullptr : &header.tables.back());
    if (!t) return bad("table ", i, " of the header contradicts itself");
    if ((uint64_t{t->dim} + t->state_floats) * 4 + 8 > kDeltaMostRowBytes) {
      return bad("rows of table ", t->id.value, " have more than ", kDeltaMostRowBytes, " bytes");
    }
    header.tables.push_back(*t);
  }
  if (header.whole && !(header.from == DeltaPoint{})) return bad("a whole model that follows one");
  return header;
}

uint32_t DeltaBlockCrc(std::span<const uint8_t, kDeltaBlockHead> head,
                       std::span<const uint8_t> payload, std::span<const uint8_t> rest) {
  return Crc32cExtend(Crc32cExtend(Crc32c(head.first(kDeltaBlockHead - 4)), payload), rest);
}

void EncodeDeltaBlockHead(DeltaBlockHead head, std::span<const uint8_t> payload, uint8_t* out) {
  std::memcpy(out, kBlockMagic, 4);
  FieldWriter w(out + 4);
  w.U32(static_cast<uint32_t>(head.type));
  w.U32(head.table);
  w.U64(head.count);
  w.U64(head.payload);
  w.U64(head.offset);
  w.U32(DeltaBlockCrc(std::span<const uint8_t, kDeltaBlockHead>(out, kDeltaBlockHead), payload));
}

std::optional<DeltaBlockHead> ParseDeltaBlockHead(std::span<const uint8_t, kDeltaBlockHead> bytes) {
  if (std::memcmp(bytes.data(), kBlockMagic, 4) != 0) return {};
  FieldReader r(bytes.data() + 4);
  DeltaBlockHead head;
  const uint32_t type = r.U32();
  if (type < 1 || type > 3) return {};
  head.type = static_cast<DeltaBlockType>(type);
  head.table = r.U32();
  head.count = r.U64();
  head.payload = r.U64();
  head.offset = r.U64();
  head.crc = r.U32();
  return head;
}

}  // namespace strata::storage
