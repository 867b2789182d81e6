// How a shard file ends (storage/FORMAT.md, "Trailer"): what is written last, and so says that all
// before it is there.
// Tested by tests/proto/runtime/files/finished_file_test.cc
// Tested by tests/storage/checkpoint/shard_file_test.cc
#ifndef STRATA_PROTO_CORE_SHARD_TRAILER_H_
#define STRATA_PROTO_CORE_SHARD_TRAILER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

namespace strata {

inline constexpr size_t kShardTrailerBytes = 32;

struct ShardTrailer {
  uint64_t footer_offset = 0;
  uint64_t file_bytes = 0;
};

// out, in: (kShardTrailerBytes). Nothing: the bytes are no trailer, or damaged.
void EncodeShardTrailer(const ShardTrailer& trailer, uint8_t* out);
std::optional<ShardTrailer> DecodeShardTrailer(const uint8_t* in);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_SHARD_TRAILER_H_
