// The fixed division of the position space into partitions.
// Tested by tests/proto/core/values_test.cc
// Tested by tests/proto/job/tables/model_tables_test.cc
#ifndef STRATA_PROTO_CORE_PARTITION_H_
#define STRATA_PROTO_CORE_PARTITION_H_

#include <bit>
#include <cstdint>

#include "proto/core/ids.h"

namespace strata {

// P equal ranges of positions; P is a power of two, 1 .. 2^20, fixed for a job's life.
class Partitioning {
 public:
  static constexpr uint32_t kDefaultPartitions = 4096;
  static constexpr uint32_t kMaxPartitions = 1u << 20;

  static constexpr bool IsValid(uint32_t partitions) {
    return partitions >= 1 && partitions <= kMaxPartitions && std::has_single_bit(partitions);
  }

  // REQUIRES: IsValid(partitions).
  constexpr explicit Partitioning(uint32_t partitions)
      : bits_(static_cast<uint32_t>(std::countr_zero(partitions))) {}

  constexpr uint32_t count() const { return 1u << bits_; }

  constexpr PartitionId Of(Position position) const {
    return PartitionId(bits_ == 0 ? 0 : static_cast<uint32_t>(position.value >> (64 - bits_)));
  }
  // First position of a partition.
  constexpr Position First(PartitionId p) const {
    return Position(bits_ == 0 ? 0 : static_cast<uint64_t>(p.value) << (64 - bits_));
  }
  // Last position of a partition (inclusive, so that the last partition needs no 2^64).
  constexpr Position Last(PartitionId p) const {
    return Position(p.value + 1 == count() ? ~0ull : First(p.Next()).value - 1);
  }

  friend constexpr bool operator==(const Partitioning&, const Partitioning&) = default;

 private:
  uint32_t bits_;
};

// A run of whole partitions, both ends inclusive.
struct PartitionRange {
  PartitionId first;
  PartitionId last;

  constexpr uint32_t size() const { return last.value - first.value + 1; }
  constexpr bool Contains(PartitionId p) const { return first <= p && p <= last; }
  friend constexpr bool operator==(const PartitionRange&, const PartitionRange&) = default;
};

}  // namespace strata

#endif  // STRATA_PROTO_CORE_PARTITION_H_
