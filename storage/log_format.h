// The bytes of the update log's files, shared by writer and reader (FORMAT.md).
#ifndef STRATA_STORAGE_LOG_FORMAT_H_
#define STRATA_STORAGE_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "storage/log_record.h"

namespace strata::storage::log_format {

inline constexpr size_t kSegmentHeaderBytes = 32;
inline constexpr size_t kRecordHeaderBytes = 128;
inline constexpr size_t kAlignment = 8;  // of every record and payload

// Bytes of a record with its padding.
constexpr uint64_t RecordBytes(uint64_t payload) {
  return kRecordHeaderBytes + (payload + kAlignment - 1) / kAlignment * kAlignment;
}

// "00000000000000000007.log"
std::string SegmentName(uint64_t segment);
std::optional<uint64_t> ParseSegmentName(const std::string& name);

struct SegmentHeader {
  uint64_t segment = 0;
  // Size of the segment before, so that a loss at its end shows; 0 if there was none.
  uint64_t previous_bytes = 0;
};
// out: (kSegmentHeaderBytes).
void EncodeSegmentHeader(const SegmentHeader& header, uint8_t* out);
// in: (kSegmentHeaderBytes). Nothing if it is damaged or of another version.
std::optional<SegmentHeader> DecodeSegmentHeader(const uint8_t* in);

// out: (kRecordHeaderBytes). payload_crc: of payload and padding.
void EncodeRecordHeader(const LogHeader& header, LogPosition at, uint64_t payload_bytes,
                        uint32_t payload_crc, uint8_t* out);

struct DecodedRecord {
  LogHeader header;
  uint64_t payload_bytes = 0;
  uint32_t payload_crc = 0;
};
// Nothing unless `in` (kRecordHeaderBytes) is a whole header, written for that place.
std::optional<DecodedRecord> DecodeRecordHeader(LogPosition at, const uint8_t* in);

// Nothing unless a whole, undamaged record starts at at.offset of `segment` (the file's bytes).
std::optional<LogRecordView> DecodeRecord(LogPosition at, std::span<const uint8_t> segment);

}  // namespace strata::storage::log_format

#endif  // STRATA_STORAGE_LOG_FORMAT_H_
