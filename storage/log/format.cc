#include "storage/log/format.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "proto/core/checksum.h"
#include "proto/core/ids.h"
#include "proto/core/mutation.h"
#include "proto/core/partition.h"
#include "storage/io/byte_codec.h"

namespace strata::storage::log {
namespace {

constexpr uint64_t kSegmentMagic = 0x31474f4c54415254ull;  // "TRATLOG1"
constexpr uint32_t kRecordMagic = 0x4345524cu;             // "LREC"
// Of versions 1 and 2: 28 bytes as today's first, then their checksum.
constexpr size_t kOldHeaderBytes = 32;
constexpr size_t kNameDigits = 20;
// Of a segment's header: the log's identity, the chain's version, and the term, of replication.
constexpr size_t kReservedOffset = 72;

}  // namespace

std::string SegmentName(uint64_t segment) {
  char name[kNameDigits + 5];
  std::snprintf(name, sizeof(name), "%020llu.log", static_cast<unsigned long long>(segment));
  return name;
}

std::optional<uint64_t> ParseSegmentName(const std::string& name) {
  if (name.size() != kNameDigits + 4 || name.substr(kNameDigits) != ".log") return std::nullopt;
  uint64_t segment = 0;
  for (size_t i = 0; i < kNameDigits; ++i) {
    if (name[i] < '0' || name[i] > '9') return std::nullopt;
    segment = segment * 10 + static_cast<uint64_t>(name[i] - '0');
  }
  return segment;
}

void EncodeSegmentHeader(const SegmentHeader& header, uint8_t* out) {
  FieldWriter fields(out);
  fields.U64(kSegmentMagic);
  fields.U64(header.segment);
  fields.U64(header.previous_bytes);
  fields.U16(kVersion);
  fields.U16(static_cast<uint16_t>(std::countr_zero(header.alignment)));
  fields.U32(0);
  fields.U64(header.owner.identity.cluster.high);
  fields.U64(header.owner.identity.cluster.low);
  fields.U64(header.owner.identity.job.high);
  fields.U64(header.owner.identity.job.low);
  fields.U64(header.owner.generation.value);
  std::memset(out + kReservedOffset, 0, kSegmentHeaderBytes - 4 - kReservedOffset);
  FieldWriter(out + kSegmentHeaderBytes - 4).U32(Crc32c({out, kSegmentHeaderBytes - 4}));
}

std::optional<SegmentHeader> DecodeSegmentHeader(const uint8_t* in) {
  FieldReader fields(in);
  if (fields.U64() != kSegmentMagic) return std::nullopt;
  SegmentHeader header;
  header.segment = fields.U64();
  header.previous_bytes = fields.U64();
  const uint16_t version = fields.U16();
  const uint16_t shift = fields.U16();
  if (FieldReader(in + kSegmentHeaderBytes - 4).U32() != Crc32c({in, kSegmentHeaderBytes - 4})) {
    return std::nullopt;
  }
  if (version != kVersion || shift > 31) return std::nullopt;
  header.alignment = uint32_t{1} << shift;
  if (header.alignment != kAlignment && header.alignment != kBlockAlignment) return std::nullopt;
  fields.U32();
  header.owner.identity.cluster.high = fields.U64();
  header.owner.identity.cluster.low = fields.U64();
  header.owner.identity.job.high = fields.U64();
  header.owner.identity.job.low = fields.U64();
  header.owner.generation = Generation(fields.U64());
  return header;
}

std::optional<uint16_t> OldVersion(std::span<const uint8_t> in) {
  if (in.size() < kOldHeaderBytes) return std::nullopt;
  FieldReader fields(in.data());
  if (fields.U64() != kSegmentMagic) return std::nullopt;
  fields.U64();
  fields.U64();
  const uint16_t version = fields.U16();
  fields.U16();
  if (fields.U32() != Crc32c(in.first(kOldHeaderBytes - 4))) return std::nullopt;
  return version < kVersion ? std::optional<uint16_t>(version) : std::nullopt;
}

void EncodeRecordHeader(const LogHeader& header, const RecordPlace& place,
                        const PayloadSum& payload, uint8_t* out) {
  FieldWriter fields(out);
  fields.U32(kRecordMagic);
  fields.U16(header.kind);
  fields.U16(kVersion);
  fields.U64(payload.bytes);
  fields.U64(place.at.segment);
  fields.U64(place.at.offset);
  fields.U64(header.job.value);
  fields.U64(header.generation.value);
  fields.U64(header.step.value);
  fields.U64(header.map_epoch.value);
  fields.U64(header.task.value);
  fields.U64(header.window);
  fields.U64(header.examples);
  fields.U32(header.shard.value);
  fields.U32(header.partitions.first.value);
  fields.U32(header.partitions.last.value);
  fields.U32(header.lane.value);
  fields.U64(place.settled);
  fields.U64(header.chain_epoch);
  fields.U64(header.term);
  fields.U64(header.uid.high);
  fields.U64(header.uid.low);
  fields.U64(0);
  fields.U32(payload.crc);
  fields.U32(Crc32c({out, kRecordHeaderBytes - 4}));
}

std::optional<DecodedRecord> DecodeRecordHeader(LogPosition at, const uint8_t* in) {
  FieldReader fields(in);
  if (fields.U32() != kRecordMagic) return std::nullopt;
  DecodedRecord record;
  record.header.kind = fields.U16();
  if (fields.U16() != kVersion) return std::nullopt;
  record.payload.bytes = fields.U64();
  if (fields.U64() != at.segment || fields.U64() != at.offset) return std::nullopt;
  record.header.job = JobId(fields.U64());
  record.header.generation = Generation(fields.U64());
  record.header.step = Step(fields.U64());
  record.header.map_epoch = MapEpoch(fields.U64());
  record.header.task = TaskId(fields.U64());
  record.header.window = fields.U64();
  record.header.examples = fields.U64();
  record.header.shard = ShardId(fields.U32());
  record.header.partitions.first = PartitionId(fields.U32());
  record.header.partitions.last = PartitionId(fields.U32());
  record.header.lane = LaneId(fields.U32());
  record.settled = fields.U64();
  record.header.chain_epoch = fields.U64();
  record.header.term = fields.U64();
  record.header.uid.high = fields.U64();
  record.header.uid.low = fields.U64();
  fields.U64();
  record.payload.crc = fields.U32();
  if (fields.U32() != Crc32c({in, kRecordHeaderBytes - 4})) return std::nullopt;
  if (record.settled > at.offset) return std::nullopt;
  return record;
}

std::optional<DecodedRecord> DecodeHeaderIn(LogPosition at, std::span<const uint8_t> segment,
                                            uint32_t alignment) {
  if (at.offset > segment.size() || segment.size() - at.offset < kRecordHeaderBytes) {
    return std::nullopt;
  }
  auto record = DecodeRecordHeader(at, segment.data() + at.offset);
  if (!record) return std::nullopt;
  // Compared without adding: a length may be any number.
  if (record->payload.bytes > segment.size()) return std::nullopt;
  if (RecordBytes(record->payload.bytes, alignment) > segment.size() - at.offset) {
    return std::nullopt;
  }
  return record;
}

std::optional<LogRecordView> CheckPayload(LogPosition at, const DecodedRecord& record,
                                          std::span<const uint8_t> bytes) {
  const uint64_t summed = RecordBytes(record.payload.bytes);
  const auto zeros = bytes.subspan(summed);
  if (!std::all_of(zeros.begin(), zeros.end(), [](uint8_t b) { return b == 0; })) {
    return std::nullopt;
  }
  const auto payload = bytes.first(summed).subspan(kRecordHeaderBytes);
  if (Crc32c(payload) != record.payload.crc && !STRATA_MUTATION("bsp.torn_record_replayed"))
    return std::nullopt;
  return LogRecordView{at, record.header, payload.first(record.payload.bytes)};
}

std::optional<LogRecordView> DecodePayload(LogPosition at, const DecodedRecord& record,
                                           std::span<const uint8_t> segment, uint32_t alignment) {
  return CheckPayload(at, record,
                      segment.subspan(at.offset, RecordBytes(record.payload.bytes, alignment)));
}

}  // namespace strata::storage::log
