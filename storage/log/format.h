// The bytes of the update log's files, shared by writer and reader (FORMAT.md).
// Tested by tests/storage/log/scan_test.cc
// Tested by tests/storage/log/update_log_test.cc
#ifndef STRATA_STORAGE_LOG_FORMAT_H_
#define STRATA_STORAGE_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "storage/log/record.h"

namespace strata::storage::log {

inline constexpr uint16_t kVersion = 3;
inline constexpr size_t kSegmentHeaderBytes = 128;
inline constexpr size_t kRecordHeaderBytes = 160;
// Of every record and payload. A segment may be of a coarser one: that of whole blocks of a device,
// where records are written around the page cache, so that no block holds bytes of two writes.
inline constexpr uint32_t kAlignment = 8;
inline constexpr uint32_t kBlockAlignment = 4096;

constexpr uint64_t AlignUp(uint64_t bytes, uint32_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}
// Bytes of a record with the zeros behind it, and the offset of a segment's first.
constexpr uint64_t RecordBytes(uint64_t payload, uint32_t alignment = kAlignment) {
  return AlignUp(kRecordHeaderBytes + payload, alignment);
}
constexpr uint64_t FirstRecord(uint32_t alignment) {
  return AlignUp(kSegmentHeaderBytes, alignment);
}

// "00000000000000000007.log"
std::string SegmentName(uint64_t segment);
std::optional<uint64_t> ParseSegmentName(const std::string& name);

struct SegmentHeader {
  uint64_t segment = 0;
  // Bytes of the segment before that count, so that a loss at its end shows; 0 if there was none.
  uint64_t previous_bytes = 0;
  uint32_t alignment = kAlignment;  // or kBlockAlignment
  LogOwner owner;
};
// out: (kSegmentHeaderBytes).
void EncodeSegmentHeader(const SegmentHeader& header, uint8_t* out);
// in: (kSegmentHeaderBytes). Nothing if it is damaged or of another version.
std::optional<SegmentHeader> DecodeSegmentHeader(const uint8_t* in);
// The version of a segment that an earlier program wrote; nothing if it is none. in: the file's
// bytes, as many as there are.
std::optional<uint16_t> OldVersion(std::span<const uint8_t> in);

struct RecordPlace {
  LogPosition at;
  // Everything before this offset of the segment had been acknowledged when the record was written:
  // at most at.offset.
  uint64_t settled = 0;
};
struct PayloadSum {
  uint64_t bytes = 0;
  uint32_t crc = 0;  // of the payload and the zeros up to kAlignment
};
// out: (kRecordHeaderBytes).
void EncodeRecordHeader(const LogHeader& header, const RecordPlace& place,
                        const PayloadSum& payload, uint8_t* out);

struct DecodedRecord {
  LogHeader header;
  PayloadSum payload;
  uint64_t settled = 0;
};
// Nothing unless `in` (kRecordHeaderBytes) is a whole header, written for that place.
std::optional<DecodedRecord> DecodeRecordHeader(LogPosition at, const uint8_t* in);

// Nothing unless an undamaged header starts at at.offset of `segment` (the file's bytes), followed
// by as many bytes as it says.
std::optional<DecodedRecord> DecodeHeaderIn(LogPosition at, std::span<const uint8_t> segment,
                                            uint32_t alignment);
// Nothing unless the payload behind that header, and the zeros behind it, are undamaged. bytes: the
// record's, all of them.
std::optional<LogRecordView> CheckPayload(LogPosition at, const DecodedRecord& record,
                                          std::span<const uint8_t> bytes);
// The same of a record that lies at at.offset of `segment`.
std::optional<LogRecordView> DecodePayload(LogPosition at, const DecodedRecord& record,
                                           std::span<const uint8_t> segment, uint32_t alignment);

}  // namespace strata::storage::log

#endif  // STRATA_STORAGE_LOG_FORMAT_H_
