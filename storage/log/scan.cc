#include "storage/log/scan.h"

#include <algorithm>

namespace strata::storage::log {

absl::StatusOr<uint64_t> VisitRecords(const SegmentHeader& header, std::span<const uint8_t> bytes,
                                      const RecordFilter& wanted, const RecordVisitor& visit) {
  LogPosition at{header.segment, FirstRecord(header.alignment)};
  while (const auto record = DecodeHeaderIn(at, bytes, header.alignment)) {
    if (wanted == nullptr || wanted(record->header)) {
      const auto view = DecodePayload(at, *record, bytes, header.alignment);
      if (!view) break;
      if (absl::Status s = visit(*view); !s.ok()) return s;
    }
    at.offset += RecordBytes(record->payload.bytes, header.alignment);
  }
  return at.offset;
}

// A record that was written when everything before `settled` had been acknowledged proves a loss
// if that reaches beyond the place where the good ones end. Records of the write that was torn lie
// behind the tear as well, where the device wrote blocks in another order; they prove nothing.
TailScan ScanTail(uint64_t segment, std::span<const uint8_t> bytes) {
  TailScan scan;
  if (bytes.size() >= kSegmentHeaderBytes) {
    scan.header = DecodeSegmentHeader(bytes.data());
    // One that was cut off within the block of its header has no record, and starts anew as well.
    if (scan.header &&
        (scan.header->segment != segment || bytes.size() < FirstRecord(scan.header->alignment))) {
      scan.header.reset();
    }
  }
  if (scan.header) {
    const auto nothing = [](const LogRecordView&) { return absl::OkStatus(); };
    scan.end = *VisitRecords(*scan.header, bytes, nullptr, nothing);
  }
  const auto behind = bytes.subspan(scan.end);
  const bool zeros = std::all_of(behind.begin(), behind.end(), [](uint8_t b) { return b == 0; });
  if (zeros) return scan;
  scan.torn_bytes = behind.size();
  const uint32_t alignment = scan.header ? scan.header->alignment : kAlignment;
  const uint64_t from =
      scan.header ? std::max(scan.end, FirstRecord(alignment)) : uint64_t{kSegmentHeaderBytes};
  for (LogPosition at{segment, from}; at.offset < bytes.size(); at.offset += alignment) {
    const auto record = DecodeHeaderIn(at, bytes, alignment);
    if (!record || record->settled <= scan.end) continue;
    if (!DecodePayload(at, *record, bytes, alignment)) continue;
    scan.intact = at.offset;
    return scan;
  }
  return scan;
}

}  // namespace strata::storage::log
