// Which rows of a hashed table die, and when they are looked at. Pure: decisions are functions of
// the rules, the rows and the step, taken for one whole partition at a time, so that they do not
// depend on tiers, shards or servers.
#ifndef STRATA_SERVER_PROTOCOL_LIFE_CYCLE_REMOVAL_H_
#define STRATA_SERVER_PROTOCOL_LIFE_CYCLE_REMOVAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/life_cycle_rules.h"
#include "proto/core/partition.h"
#include "server/protocol/life_cycle_counters.h"
#include "storage/row/layout.h"

namespace strata::server {

// Immutable.
class Removal {
 public:
  Removal(const RemovalRules& rules, const storage::RowLayout& layout)
      : rules_(rules), layout_(layout) {}

  bool active() const { return rules_.any(); }
  const RemovalRules& rules() const { return rules_; }

  // The first partition of `range` from `from` on that is looked at after `step`: those with the
  // same remainder by every_steps.
  std::optional<PartitionId> NextDue(PartitionRange range, PartitionId from, uint64_t step) const;

  // Steps since the row's last update, which may be one before the job (storage::StepOf). 0 for a
  // row from a later step than this, where steps are below 2^31; beyond there is none. REQUIRES:
  // they are fewer than 2^32.
  static uint64_t Idle(uint32_t last_step, uint64_t step);

  // REQUIRES: rules().scored. The row's score, decayed to `step`.
  float Score(const uint8_t* row, uint64_t step) const;
  // The same with what this step adds. Counts that are no numbers from 0 to 2^24 are taken for the
  // nearest, NaN for 0.
  float ScoreAfter(const uint8_t* row, uint64_t step, float shows, float clicks) const;

  // The first rule (but for kBytes) that takes the row at `step`.
  RemovalRule Judge(const uint8_t* row, uint64_t step) const;

  const storage::RowLayout& layout() const { return layout_; }

 private:
  storage::RowMeta Meta(const uint8_t* row) const;
  bool NormBelow(const uint8_t* row) const;

  const RemovalRules rules_;
  const storage::RowLayout layout_;
};

// One look at one partition. Memory: 16 bytes per row to be removed and, with a byte budget, 24 per
// row of the partition.
class PartitionSweep {
 public:
  // `removal` outlives it.
  PartitionSweep(const Removal* removal, uint64_t step) : removal_(removal), step_(step) {}

  // Every row of the partition, ascending by position.
  void Add(Position position, const uint8_t* row);

  struct Doomed {
    Position position;
    RemovalRule rule;
  };
  // Ascending by position.
  std::vector<Doomed> Finish();

 private:
  struct Kept {
    float score;
    uint64_t idle;
    Position position;
  };
  const Removal* const removal_;
  const uint64_t step_;
  std::vector<Doomed> doomed_;
  std::vector<Kept> kept_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_LIFE_CYCLE_REMOVAL_H_
