// Which keys get a row: the admission filters of one hashed table within one shard, one for each
// partition, so that no decision depends on how partitions are spread over shards and servers.
#ifndef STRATA_SERVER_PROTOCOL_LIFE_CYCLE_ADMISSION_H_
#define STRATA_SERVER_PROTOCOL_LIFE_CYCLE_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/life_cycle_rules.h"
#include "proto/core/partition.h"

namespace strata::server {

// A pure state machine: its answers are a function of the rules and of the calls before. Memory, of
// a partition that any key waits in: at most about rules.partition_bytes (type counting: at most
// exactly that).
class AdmissionFilter {
 public:
  // Upper bound of what a key costs in a filter of type exact: 16 bytes and a control byte in a
  // table that is at least 7/16 full.
  static constexpr uint64_t kExactEntryBytes = 40;

  AdmissionFilter(const AdmissionRules& rules, TableId table, uint64_t seed,
                  Partitioning partitioning);

  bool active() const { return rules_.type != AdmissionType::kAlways; }
  AdmissionType type() const { return rules_.type; }

  // A step touches a key that has no row: counts that, and says whether the key gets one. Once per
  // key and step, the keys of a partition ascending by position.
  bool Admit(Position position, Key key, uint64_t step);

  // Of exact and counting: how many steps count for the key so far.
  uint32_t StepsOf(Position position) const;

  // The type of the sections of shard files (storage/checkpoint/shard_file.h) that Save's bytes are
  // kept in.
  static constexpr uint32_t kSection = 5;
  // The filters that keys wait in, or did, ascending by partition; the bytes are valid during the
  // call: u32 table, u32 type, then
  //   exact: (u64 position, u64 steps) ascending by position
  //   counting: u64 counted since the last halving, then one byte per counter
  using Visitor = std::function<absl::Status(PartitionId, std::span<const uint8_t>)>;
  absl::Status Save(const Visitor& visit) const;
  // Takes over what Save gave for a partition. A job may start from the checkpoint of one with
  // other rules: bytes of another table or type of filter are let be, and counters of another size
  // are made those of this one. DATA_LOSS: the bytes are damaged.
  absl::Status Load(PartitionId partition, std::span<const uint8_t> bytes);

  uint64_t bytes() const;

 private:
  static constexpr uint32_t kSketchRows = 4;
  struct Filter {
    absl::flat_hash_map<uint64_t, uint32_t> steps;  // exact, by position
    std::vector<uint8_t> counters;                  // counting: (kSketchRows, width_)
    uint64_t counted = 0;                           // counting: since the last halving
  };

  bool AdmitExact(Filter& filter, Position position) const;
  bool AdmitCounting(Filter& filter, Position position) const;
  void ForgetRare(Filter& filter) const;
  std::vector<uint8_t> Resized(std::span<const uint8_t> counters) const;
  size_t Cell(Position position, uint32_t row) const;
  uint32_t LeastCounter(const Filter& filter, Position position) const;

  const AdmissionRules rules_;
  const TableId table_;
  const uint64_t seed_;
  const Partitioning partitioning_;
  const size_t most_entries_;  // exact: of one partition
  const size_t width_;         // counting: counters of a row, a power of two
  std::map<PartitionId, Filter> filters_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_LIFE_CYCLE_ADMISSION_H_
