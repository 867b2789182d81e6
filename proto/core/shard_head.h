// Who wrote a shard file, from its first bytes (storage/FORMAT.md, "Header"), for those who do not
// read rows.
// Tested by tests/storage/checkpoint/shard_file_test.cc
#ifndef STRATA_PROTO_CORE_SHARD_HEAD_H_
#define STRATA_PROTO_CORE_SHARD_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proto/core/uid.h"

namespace strata {

inline constexpr uint64_t kShardFileMagic = 0x4452485341525453ull;  // "STRASHRD"
inline constexpr uint32_t kShardFileVersion = 2;
// Enough of a file for up to 245 tables.
inline constexpr size_t kShardHeadBytes = 4096;

// Nothing: `start` does not begin with the whole header of a shard file of this version, or that is
// damaged.
std::optional<FileWriter> DecodeShardWriter(std::span<const uint8_t> start);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_SHARD_HEAD_H_
