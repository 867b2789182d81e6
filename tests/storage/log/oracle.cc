#include "tests/storage/log/oracle.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/core/ids.h"
#include "storage/log/format.h"
#include "storage/log/scan.h"

namespace strata::storage {
namespace {

using log::RecordBytes;

// True of every scan, whatever the bytes.
std::string JudgeScan(const log::TailScan& scan, uint64_t segment, std::span<const uint8_t> bytes) {
  if (scan.end > bytes.size()) return "the end lies behind the bytes";
  if (!scan.header) return scan.end == 0 ? "" : "records without a header";
  if (scan.torn_bytes > bytes.size() - scan.end) return "more is torn than there is";
  if (scan.intact && *scan.intact < scan.end) return "an intact record before the end";
  const auto good = bytes.first(scan.end);
  const log::TailScan again = log::ScanTail(segment, good);
  if (!again.header || again.end != scan.end || again.torn_bytes != 0 || again.intact) {
    return "what was cut off where the scan said is not whole";
  }
  return "";
}

std::vector<BuiltSegment::Record> Visit(const log::TailScan& scan, std::span<const uint8_t> bytes) {
  std::vector<BuiltSegment::Record> found;
  if (!scan.header) return found;
  (void)log::VisitRecords(*scan.header, bytes.first(scan.end), nullptr,
                          [&](const LogRecordView& view) {
                            BuiltSegment::Record record;
                            record.begin = view.at.offset;
                            record.header = view.header;
                            record.payload.assign(view.payload.begin(), view.payload.end());
                            found.push_back(std::move(record));
                            return absl::OkStatus();
                          });
  return found;
}

}  // namespace

BuiltSegment BuildSegment(uint64_t segment, uint32_t alignment, std::span<const size_t> payloads,
                          size_t group) {
  BuiltSegment built;
  built.segment = segment;
  built.alignment = alignment;
  built.bytes.resize(log::FirstRecord(alignment));
  log::EncodeSegmentHeader({.segment = segment, .previous_bytes = 77, .alignment = alignment},
                           built.bytes.data());
  uint64_t settled = 0;
  for (size_t i = 0; i < payloads.size(); ++i) {
    BuiltSegment::Record record;
    record.begin = built.bytes.size();
    record.end = record.begin + RecordBytes(payloads[i], alignment);
    if (i % group == 0) settled = record.begin;
    record.settled = settled;
    record.header.kind = static_cast<uint16_t>(i + 1);
    record.header.step = Step(i + 1);
    for (size_t b = 0; b < payloads[i]; ++b) {
      record.payload.push_back(static_cast<uint8_t>(i * 31 + b * 7));
    }
    built.bytes.resize(record.end);
    uint8_t* const out = built.bytes.data() + record.begin;
    std::copy(record.payload.begin(), record.payload.end(), out + log::kRecordHeaderBytes);
    const uint64_t summed = RecordBytes(payloads[i]) - log::kRecordHeaderBytes;
    log::EncodeRecordHeader(record.header, {{segment, record.begin}, settled},
                            {payloads[i], Crc32c({out + log::kRecordHeaderBytes, summed})}, out);
    built.records.push_back(std::move(record));
  }
  return built;
}

std::string JudgeEdited(const BuiltSegment& built, size_t size, std::span<const size_t> bits) {
  std::vector<uint8_t> bytes(built.bytes.begin(),
                             built.bytes.begin() + static_cast<ptrdiff_t>(size));
  for (const size_t bit : bits) {
    if (bit / 8 < size) bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
  const auto whole = [&](uint64_t begin, uint64_t end) {
    return end <= size && std::equal(bytes.begin() + static_cast<ptrdiff_t>(begin),
                                     bytes.begin() + static_cast<ptrdiff_t>(end),
                                     built.bytes.begin() + static_cast<ptrdiff_t>(begin));
  };
  const log::TailScan scan = log::ScanTail(built.segment, bytes);
  if (std::string s = JudgeScan(scan, built.segment, bytes); !s.empty()) return s;
  // The good ones: those before the first that is not whole. (The zeros that fill up the block of
  // the header mean nothing.)
  const bool header =
      whole(0, log::kSegmentHeaderBytes) && size >= log::FirstRecord(built.alignment);
  if (header != scan.header.has_value()) return "the header is judged wrongly";
  size_t good = 0;
  uint64_t end = header ? log::FirstRecord(built.alignment) : 0;
  while (header && good < built.records.size() &&
         whole(built.records[good].begin, built.records[good].end)) {
    end = built.records[good++].end;
  }
  if (scan.end != end) return absl::StrCat("the end is ", scan.end, ", not ", end);
  const auto found = Visit(scan, bytes);
  if (found.size() != good) return "not all good records are found";
  for (size_t i = 0; i < good; ++i) {
    if (!(found[i].header == built.records[i].header) ||
        found[i].payload != built.records[i].payload) {
      return absl::StrCat("record ", i, " is not what was written");
    }
  }
  // Damage is what a later write's whole record proves; anything else is a torn tail.
  std::optional<uint64_t> proof;
  for (size_t i = good; i < built.records.size() && !proof; ++i) {
    const BuiltSegment::Record& r = built.records[i];
    // Without a header nobody knows of the zeros that fill blocks.
    const uint64_t r_end = header ? r.end : r.begin + RecordBytes(r.payload.size());
    if (whole(r.begin, r_end) && r.settled > end) proof = r.begin;
  }
  if (scan.intact != proof) return "damage and torn tail are confused";
  return "";
}

std::string JudgeLogInput(std::span<const uint8_t> input) {
  if (input.empty()) return "";
  const uint8_t mode = input[0];
  input = input.subspan(1);
  if (mode % 2 == 0) return JudgeScan(log::ScanTail(1, input), 1, input);
  size_t at = 0;
  const auto next = [&](size_t bound) {
    size_t value = 0;
    for (int i = 0; i < 3 && at < input.size(); ++i) value = value << 8 | input[at++];
    return bound == 0 ? 0 : value % bound;
  };
  std::vector<size_t> payloads(next(6));
  for (size_t& payload : payloads) payload = next(400);
  const uint32_t alignment = mode & 2 ? log::kBlockAlignment : log::kAlignment;
  const BuiltSegment built = BuildSegment(1 + mode, alignment, payloads, 1 + next(4));
  std::vector<size_t> bits(next(6));
  for (size_t& bit : bits) bit = next(built.bytes.size() * 8);
  const size_t size = mode & 4 ? next(built.bytes.size() + 1) : built.bytes.size();
  return JudgeEdited(built, size, bits);
}

}  // namespace strata::storage
