// Strong types for the look-alike integers of the protocol (DESIGN.md section 4 gives their
// meaning).
// Tested by tests/proto/core/values_test.cc
#ifndef STRATA_PROTO_CORE_IDS_H_
#define STRATA_PROTO_CORE_IDS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace strata {

// An integer that does not convert to or from other integers by accident. Trivially copyable, the
// size and layout of T, so that arrays of it can be read from and written to the wire with memcpy.
template <typename Tag, typename T>
struct StrongInt {
  using ValueType = T;

  T value = 0;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(T v) : value(v) {}

  constexpr StrongInt Next() const { return StrongInt(static_cast<T>(value + 1)); }

  friend constexpr bool operator==(StrongInt, StrongInt) = default;
  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

  template <typename H>
  friend H AbslHashValue(H h, StrongInt s) {
    return H::combine(static_cast<H&&>(h), s.value);
  }
};

// A feature id. Any 64-bit value is legal; nothing is reserved.
using Key = StrongInt<struct KeyTag, uint64_t>;
// mix64(key ^ table salt): where a key lies (position.h).
using Position = StrongInt<struct PositionTag, uint64_t>;
// One of P equal ranges of positions (partition.h).
using PartitionId = StrongInt<struct PartitionTag, uint32_t>;
// A run of whole partitions over all tables of a job; numbered 0.. within the job.
using ShardId = StrongInt<struct ShardTag, uint32_t>;
// A table of a job, numbered 0.. within the job.
using TableId = StrongInt<struct TableTag, uint32_t>;
// A job of a cluster, never reused.
using JobId = StrongInt<struct JobTag, uint64_t>;
// A virtual worker of a job, 0 .. lanes-1.
using LaneId = StrongInt<struct LaneTag, uint32_t>;
// The shards' and lanes' shared counter: step 1 is the first; clock 0 means nothing committed.
using Step = StrongInt<struct StepTag, uint64_t>;
// Version of the shard map; only grows.
using MapEpoch = StrongInt<struct MapEpochTag, uint64_t>;
// Counts roll-backs of a job to a checkpoint; the first is 1.
using Generation = StrongInt<struct GenerationTag, uint64_t>;
// A membership session of a process, given by the scheduler; never reused.
using SessionId = StrongInt<struct SessionTag, uint64_t>;
// Counts a session's mutating calls; the first is 1.
using Sequence = StrongInt<struct SequenceTag, uint64_t>;
// A contiguous piece of input, numbered over the whole job: epoch * tasks per epoch + index.
using TaskId = StrongInt<struct TaskTag, uint64_t>;

static_assert(sizeof(Key) == 8 && sizeof(Position) == 8);

}  // namespace strata

template <typename Tag, typename T>
struct std::hash<strata::StrongInt<Tag, T>> {
  size_t operator()(strata::StrongInt<Tag, T> s) const { return std::hash<T>()(s.value); }
};

#endif  // STRATA_PROTO_CORE_IDS_H_
