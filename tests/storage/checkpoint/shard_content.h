// What a shard's file holds, as tests see it: written to files and read from them.
#ifndef STRATA_TESTS_STORAGE_CHECKPOINT_SHARD_CONTENT_H_
#define STRATA_TESTS_STORAGE_CHECKPOINT_SHARD_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/storage/io/file_bytes.h"

namespace strata::storage {

struct Content {
  std::map<uint32_t, std::map<uint64_t, Bytes>> rows;                 // table, position
  std::map<uint32_t, std::map<uint64_t, std::vector<float>>> images;  // table, position
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t, Bytes>> sections;
  friend bool operator==(const Content&, const Content&) = default;
};

inline constexpr uint32_t kContentPartitions = 16;
inline constexpr PartitionRange kAllPartitions = {PartitionId(0),
                                                  PartitionId(kContentPartitions - 1)};

// Of a checkpoint of partitions 4 .. 11, with a hashed table 0 and a dense table 2.
ShardFileHeader ContentHeader();
// So many rows a table, half as many pre-images, three sections.
Content MakeContent(size_t rows, uint64_t seed);
// Tables alternate, as a writer that goes partition by partition does.
absl::StatusOr<ShardFileSummary> WriteContent(const std::string& path, const Content& content,
                                              FileSystem& files = FileSystem::Kernel());
absl::Status ReadContent(const std::string& path, PartitionRange partitions, Content& out);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_CHECKPOINT_SHARD_CONTENT_H_
