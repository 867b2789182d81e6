// An account of one table's rows that keeps them in a map and looks at all of them at every step:
// what admission and removal must come to.
#ifndef STRATA_TESTS_SERVER_SHARD_LIFE_CYCLE_ACCOUNT_H_
#define STRATA_TESTS_SERVER_SHARD_LIFE_CYCLE_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/life_cycle_rules.h"
#include "proto/core/table_spec.h"
#include "server/protocol/life_cycle_admission.h"
#include "server/protocol/life_cycle_counters.h"
#include "server/shard/shard.h"
#include "storage/row/hash.h"
#include "storage/row/layout.h"

namespace strata::server {

inline constexpr uint32_t kDim = 3;
inline constexpr uint64_t kSteps = 48;

// Segments of 2 floats (adagrad) and 1 (sgd).
TableSpec Table(const LifeCycleRules& rules);

using Push = std::map<Position, std::vector<float>>;  // gradients, then counts
// What is pushed at a step: a function of the arguments.
Push PushOf(const TableSpec& table, uint64_t seed, uint64_t step);
// The part of it within the shard's range, as the shard takes it.
ShardUpdate UpdateOf(const Push& push, const Shard& shard, uint64_t examples);

class Account {
 public:
  explicit Account(const TableSpec& table);
  void Step(const Push& push, uint64_t step, uint64_t examples);
  std::vector<float> Weights(Position p) const;
  storage::HashSum Hash() const;

  LifeCycleCounters counters;

 private:
  bool Admitted(Position p, uint64_t step);
  void Update(Position p, std::vector<float> sums, uint64_t step, uint64_t examples);
  double Decayed(const std::vector<uint8_t>& row, uint64_t step) const;
  uint64_t Last(const std::vector<uint8_t>& row) const;
  RemovalRule RuleFor(const std::vector<uint8_t>& row, uint64_t step) const;
  void Look(PartitionId part, uint64_t step);

  const TableSpec table_;
  const storage::RowLayout layout_;
  AdmissionFilter filter_;
  std::map<Position, uint32_t> steps_;
  std::map<Position, std::vector<uint8_t>> rows_;
};

// After steps 0 .. kSteps of PushOf with seed 1 and 1 + step % 3 examples.
std::vector<Account> Accounts(const TableSpec& table);

struct Case {
  std::string name;
  LifeCycleRules rules;
};
// Every way of admission and every rule of removal.
std::vector<Case> Cases();

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_SHARD_LIFE_CYCLE_ACCOUNT_H_
