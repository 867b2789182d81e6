#include "storage/log/batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"

namespace strata::storage {
namespace {

using log::kAlignment;
using log::kBlockAlignment;
using log::kRecordHeaderBytes;
using log::RecordBytes;

alignas(kAlignment) constexpr std::array<uint8_t, kBlockAlignment> kZeros{};

// Zeros behind a payload that its checksum covers.
size_t SummedZeros(uint64_t payload) { return RecordBytes(payload) - kRecordHeaderBytes - payload; }

}  // namespace

HugeMemory BatchMemory::Take() {
  {
    MutexLock lock(&mu_);
    if (!kept_.empty()) {
      HugeMemory memory = std::move(kept_.back());
      kept_.pop_back();
      return memory;
    }
  }
  absl::StatusOr<HugeMemory> memory = HugeMemory::Allocate(kBytes, PageUse::kHuge);
  return memory.ok() ? *std::move(memory) : HugeMemory();
}

void BatchMemory::Return(HugeMemory memory) {
  MutexLock lock(&mu_);
  if (memory.size() > 0 && kept_.size() < kKept) kept_.push_back(std::move(memory));
}

absl::StatusOr<LogBatch> LogBatch::Make(std::span<const LogEntry> entries, uint64_t payload_limit,
                                        BatchMemory* memory) {
  if (entries.empty()) return absl::InvalidArgumentError("no entry to append to the update log");
  LogBatch batch(memory);
  batch.records_.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    Record& record = batch.records_[i];
    record.header = entries[i].header;
    record.parts = entries[i].parts;
    for (const auto part : record.parts) record.payload.bytes += part.size();
    if (record.payload.bytes > payload_limit) {
      return absl::InvalidArgumentError(absl::StrCat("a log record of ", record.payload.bytes,
                                                     " bytes; the limit is ", payload_limit));
    }
  }
  if (memory != nullptr && batch.Bytes(kBlockAlignment) <= BatchMemory::kBytes) {
    batch.memory_ = memory->Take();
  }
  if (batch.memory_.size() > 0) {
    batch.Stage();
  } else {
    batch.Sum();
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint32_t crc = batch.records_[i].crc;
    if (entries[i].summed != nullptr) *entries[i].summed = crc;
    if (crc == entries[i].crc32c.value_or(crc)) continue;
    return absl::DataLossError(
        absl::StrCat("a log record of ", batch.records_[i].payload.bytes, " bytes has CRC32C ", crc,
                     ", and not ", *entries[i].crc32c, ": it was damaged on its way here"));
  }
  return batch;
}

LogBatch::~LogBatch() {
  if (pool_ != nullptr) pool_->Return(std::move(memory_));
}

void LogBatch::Stage() {
  uint8_t* to = memory_.data();
  for (Record& record : records_) {
    record.staged = to;
    uint8_t* out = to + kRecordHeaderBytes;
    for (const auto part : record.parts) {
      record.payload.crc = Crc32cCopy(record.payload.crc, part, out);
      out += part.size();
    }
    record.crc = record.payload.crc;
    record.payload.crc =
        Crc32cExtend(record.payload.crc, {kZeros.data(), SummedZeros(record.payload.bytes)});
    to += RecordBytes(record.payload.bytes, kBlockAlignment);
    std::memset(out, 0, static_cast<size_t>(to - out));
  }
}

void LogBatch::Sum() {
  for (Record& record : records_) {
    for (const auto part : record.parts) {
      record.payload.crc = Crc32cExtend(record.payload.crc, part);
    }
    record.crc = record.payload.crc;
    record.payload.crc =
        Crc32cExtend(record.payload.crc, {kZeros.data(), SummedZeros(record.payload.bytes)});
  }
}

uint64_t LogBatch::Bytes(uint32_t alignment) const {
  uint64_t bytes = 0;
  for (const Record& record : records_) bytes += RecordBytes(record.payload.bytes, alignment);
  return bytes;
}

void LogBatch::Place(log::RecordPlace place, uint32_t alignment, std::vector<iovec>& parts) {
  const uint64_t settled = place.settled;
  for (Record& record : records_) {
    const uint64_t bytes = RecordBytes(record.payload.bytes, alignment);
    uint8_t* const head = record.staged != nullptr ? record.staged : record.head.data();
    place.settled = std::min(settled, place.at.offset);
    log::EncodeRecordHeader(record.header, place, record.payload, head);
    if (record.staged != nullptr) {
      parts.push_back({head, bytes});
    } else {
      parts.push_back({head, kRecordHeaderBytes});
      for (const auto part : record.parts) {
        parts.push_back({const_cast<uint8_t*>(part.data()), part.size()});
      }
      const uint64_t zeros = bytes - kRecordHeaderBytes - record.payload.bytes;
      parts.push_back({const_cast<uint8_t*>(kZeros.data()), zeros});
    }
    place.at.offset += bytes;
  }
}

}  // namespace strata::storage
