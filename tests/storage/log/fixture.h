// Records for tests of the update log: every field, and the payload, follow from a number.
#ifndef STRATA_TESTS_STORAGE_LOG_FIXTURE_H_
#define STRATA_TESTS_STORAGE_LOG_FIXTURE_H_

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "tests/storage/io/file_bytes.h"

namespace strata::storage {

struct KeptRecord {
  LogHeader header;
  Bytes payload;
  friend bool operator==(const KeptRecord&, const KeptRecord&) = default;
};

inline LogHeader HeaderOf(uint64_t n) {
  return {.kind = static_cast<uint16_t>(n * 3),
          .job = JobId(n + 1),
          .shard = ShardId(static_cast<uint32_t>(n + 2)),
          .generation = Generation(n + 3),
          .step = Step(n),
          .partitions = {PartitionId(static_cast<uint32_t>(n)),
                         PartitionId(static_cast<uint32_t>(2 * n))},
          .map_epoch = MapEpoch(n + 4),
          .task = TaskId(n + 5),
          .window = n + 6,
          .lane = LaneId(static_cast<uint32_t>(n + 7)),
          .examples = n + 8,
          .uid = {n + 9, n + 10},
          .chain_epoch = n + 11,
          .term = n + 12};
}

inline Bytes PayloadOf(uint64_t n, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(n * 31 + i * 7);
  return bytes;
}

inline KeptRecord RecordOf(uint64_t n, size_t size) { return {HeaderOf(n), PayloadOf(n, size)}; }

// In three parts of uneven sizes, one of them empty.
inline absl::StatusOr<LogPosition> Append(UpdateLog& log, const KeptRecord& kept) {
  const std::span<const uint8_t> all(kept.payload);
  const size_t cut = all.size() / 3;
  const std::span<const uint8_t> parts[] = {all.first(cut), {}, all.subspan(cut)};
  return log.Append(LogEntry{kept.header, parts});
}

inline absl::Status ReadAll(UpdateLog& log, uint64_t from, std::vector<KeptRecord>& out) {
  return log.Replay(from, [&](const LogRecordView& view) {
    out.push_back({view.header, Bytes(view.payload.begin(), view.payload.end())});
    return reinterpret_cast<uintptr_t>(view.payload.data()) % 8 == 0
               ? absl::OkStatus()
               : absl::InternalError("not aligned");
  });
}

inline std::vector<KeptRecord> MustReadAll(UpdateLog& log, uint64_t from = 0) {
  std::vector<KeptRecord> out;
  const absl::Status s = ReadAll(log, from, out);
  if (!s.ok()) FAIL(s.ToString());
  return out;
}

inline std::unique_ptr<UpdateLog> MustOpen(const UpdateLogOptions& options) {
  auto log = UpdateLog::Open(options);
  if (!log.ok()) FAIL(log.status().ToString());
  return *std::move(log);
}

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_LOG_FIXTURE_H_
