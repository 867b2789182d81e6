#include "tests/server/shard/life_cycle_account.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <tuple>

#include "ops/optimizer.h"
#include "proto/core/partition.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {

TableSpec Table(const LifeCycleRules& rules) {
  TableSpec t;
  t.id = TableId(0);
  t.name = "features";
  t.segments = {{"a", 2, {InitializerType::kNormal, 0.5f}, {OptimizerType::kAdagrad, 0.1f}},
                {"b", 1, {}, {OptimizerType::kSgd, 0.25f}}};
  t.life_cycle = rules;
  return t;
}

Push PushOf(const TableSpec& table, uint64_t seed, uint64_t step) {
  std::mt19937_64 random(seed * 7919 + step);
  Push push;
  for (int i = 0; i < 40; ++i) {
    // Some keys come often, most seldom; both ends of the keys and of the positions are among them.
    const uint64_t n = random() % 4 == 0 ? random() % 12 : random() % 400;
    const uint64_t key = n == 0 ? 0 : n == 1 ? ~uint64_t{0} : n * 1000003;
    std::vector<float> row;
    for (uint32_t d = 0; d < kDim; ++d) row.push_back(static_cast<float>(random() % 64) / 32 - 1);
    if (random() % 50 == 0) row.assign(kDim, std::numeric_limits<float>::quiet_NaN());
    const auto shows = static_cast<float>(1 + random() % 5);
    if (table.life_cycle.scored()) {
      row.push_back(shows);
      row.push_back(random() % 3 == 0 ? 1.0f : 0.0f);
    }
    push[n == 2 ? Position(0) : n == 3 ? Position(~0ull) : table.PositionOfKey(Key(key))] = row;
  }
  return push;
}

ShardUpdate UpdateOf(const Push& push, const Shard& shard, uint64_t examples) {
  struct Owned {
    std::vector<Position> positions;
    std::vector<float> values;
  };
  auto owned = std::make_shared<Owned>();
  for (const auto& [p, row] : push) {
    if (p < shard.first_position() || shard.last_position() < p) continue;
    owned->positions.push_back(p);
    owned->values.insert(owned->values.end(), row.begin(), row.end());
  }
  ShardUpdate update;
  update.examples = examples;
  update.tables.push_back({owned->positions, owned->values.data(), owned});
  return update;
}

Account::Account(const TableSpec& table)
    : table_(table),
      layout_(storage::RowLayout::For(table)),
      filter_(table.life_cycle.admission, table.id, kSeed, Partitioning(kPartitions)) {}

void Account::Step(const Push& push, uint64_t step, uint64_t examples) {
  for (const auto& [p, sums] : push) {
    if (!rows_.contains(p) && !Admitted(p, step)) continue;
    Update(p, sums, step, examples);
  }
  const RemovalRules& r = table_.life_cycle.removal;
  if (!r.any()) return;
  for (uint32_t part = 0; part < kPartitions; ++part) {
    if (part % r.every_steps == step % r.every_steps) Look(PartitionId(part), step);
  }
}

std::vector<float> Account::Weights(Position p) const {
  std::vector<float> out(kDim);
  const auto it = rows_.find(p);
  if (it == rows_.end()) {
    storage::InitialWeights(table_, layout_, kSeed, table_.KeyAtPosition(p), out.data());
  } else {
    std::memcpy(out.data(), it->second.data(), kDim * 4);
  }
  return out;
}

storage::HashSum Account::Hash() const {
  storage::HashSum sum;
  for (const auto& [p, row] : rows_) {
    sum += storage::HashRow(table_.id, table_.KeyAtPosition(p), row);
  }
  return sum;
}

bool Account::Admitted(Position p, uint64_t step) {
  const AdmissionRules& a = table_.life_cycle.admission;
  if (a.type == AdmissionType::kAlways) return true;
  bool yes;
  if (a.type == AdmissionType::kExact) {
    yes = ++steps_[p] == a.min_steps;
    if (yes) steps_.erase(p);
  } else {
    yes = filter_.Admit(p, table_.KeyAtPosition(p), step);  // has a test of its own
  }
  ++(yes ? counters.admitted : counters.refused);
  return yes;
}

void Account::Update(Position p, std::vector<float> sums, uint64_t step, uint64_t examples) {
  std::vector<uint8_t> row(layout_.row_bytes());
  const auto known = rows_.find(p);
  if (known != rows_.end()) {
    row = known->second;
  } else {
    storage::InitialRow(table_, layout_, kSeed, table_.KeyAtPosition(p), row.data());
  }
  bool applied = false;
  for (const storage::SegmentLayout& s : layout_.segments) {
    const ops::StepScalars scalars = ops::ScalarSource(s.optimizer).At(step, examples);
    float* weights = reinterpret_cast<float*>(row.data()) + s.weight_offset;
    float* state = reinterpret_cast<float*>(row.data()) + s.state_offset;
    uint8_t outcome = 0;
    ops::ApplyRows(s.optimizer, scalars, s.dim, 1, &weights, &state, sums.data() + s.weight_offset,
                   sums.size(), &outcome);
    applied |= outcome != ops::kRowRefused;
  }
  if (!applied) return;
  storage::RowMeta meta;
  std::memcpy(&meta, &row[layout_.meta_offset()], sizeof meta);
  if (table_.life_cycle.scored()) {
    const RemovalRules& r = table_.life_cycle.removal;
    const auto score = static_cast<float>(Decayed(row, step) + r.show_weight * sums[kDim] +
                                          r.click_weight * sums[kDim + 1]);
    std::memcpy(&row[layout_.score_offset()], &score, 4);
  }
  meta = {static_cast<uint32_t>(step), meta.updates + 1};
  std::memcpy(&row[layout_.meta_offset()], &meta, sizeof meta);
  rows_[p] = row;
}

// Decay is a power of two here, so that the order of multiplications does not matter.
double Account::Decayed(const std::vector<uint8_t>& row, uint64_t step) const {
  const RemovalRules& r = table_.life_cycle.removal;
  float score;
  std::memcpy(&score, &row[layout_.score_offset()], 4);
  double out = score;
  for (uint64_t t = Last(row) + 1; t <= step; ++t) {
    if (t % r.decay_steps == 0) out *= r.decay;
  }
  return out;
}

uint64_t Account::Last(const std::vector<uint8_t>& row) const {
  uint32_t last;
  std::memcpy(&last, &row[layout_.meta_offset()], 4);
  return last;
}

RemovalRule Account::RuleFor(const std::vector<uint8_t>& row, uint64_t step) const {
  const RemovalRules& r = table_.life_cycle.removal;
  uint32_t updates;
  std::memcpy(&updates, &row[layout_.meta_offset() + 4], 4);
  const uint64_t idle = step - Last(row);
  float w[kDim];
  std::memcpy(w, row.data(), sizeof w);
  if (r.ttl_steps != 0 && idle > r.ttl_steps) return RemovalRule::kTtl;
  if (updates < r.count_below && idle >= r.count_idle_steps) return RemovalRule::kCount;
  if (r.scored && static_cast<float>(Decayed(row, step)) < r.score_below) {
    return RemovalRule::kScore;
  }
  double squares = 0;
  for (const double x : w) squares += x * x;
  if (squares < double{r.norm_below} * r.norm_below && idle >= r.norm_idle_steps) {
    return RemovalRule::kNorm;
  }
  return RemovalRule::kNone;
}

void Account::Look(PartitionId part, uint64_t step) {
  const Partitioning partitions(kPartitions);
  std::vector<std::tuple<float, int64_t, Position>> left;
  const auto remove = [&](Position p, RemovalRule rule) {
    rows_.erase(p);
    ++counters.removed[static_cast<size_t>(rule)];
  };
  const auto rows = rows_;
  for (const auto& [p, row] : rows) {
    if (partitions.Of(p) != part) continue;
    const RemovalRule rule = RuleFor(row, step);
    if (rule != RemovalRule::kNone) {
      remove(p, rule);
      continue;
    }
    const float score = table_.life_cycle.scored() ? static_cast<float>(Decayed(row, step)) : 0.0f;
    left.emplace_back(score, -static_cast<int64_t>(step - Last(row)), p);
  }
  const uint64_t budget = table_.life_cycle.removal.partition_bytes;
  if (budget == 0) return;
  std::sort(left.begin(), left.end());
  for (size_t i = 0; i < left.size() && (left.size() - i) * layout_.row_bytes() > budget; ++i) {
    remove(std::get<2>(left[i]), RemovalRule::kBytes);
  }
}

std::vector<Account> Accounts(const TableSpec& table) {
  std::vector<Account> accounts = {Account(table)};
  for (uint64_t step = 1; step <= kSteps; ++step) {
    accounts.push_back(accounts.back());
    accounts.back().Step(PushOf(table, 1, step), step, 1 + step % 3);
  }
  return accounts;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  {
    LifeCycleRules r;
    r.admission = {AdmissionType::kExact, 2, 1, 1 << 16};
    r.removal.every_steps = 3;
    r.removal.ttl_steps = 9;
    r.removal.count_below = 3;
    r.removal.count_idle_steps = 5;
    cases.push_back({"exact, ttl, count", r});
  }
  {
    LifeCycleRules r;
    r.admission = {AdmissionType::kCounting, 3, 1, 256};
    r.removal.every_steps = 1;
    r.removal.norm_below = 0.4f;
    r.removal.norm_idle_steps = 2;
    r.removal.partition_bytes = 6 * 36;
    cases.push_back({"counting, norm, bytes", r});
  }
  {
    LifeCycleRules r;
    r.admission.type = AdmissionType::kProbability;
    r.admission.probability = 0.4f;
    r.removal.every_steps = 5;
    r.removal.scored = true;
    r.removal.score_below = 0.25f;
    r.removal.show_weight = 0.125f;
    r.removal.click_weight = 1;
    r.removal.decay = 0.5f;
    r.removal.decay_steps = 4;
    r.removal.partition_bytes = 3 * 32;
    cases.push_back({"probability, score, bytes", r});
  }
  return cases;
}

}  // namespace strata::server
