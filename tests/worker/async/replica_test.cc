// Elastic averaging's arithmetic against float64 (ALGORITHMS.md section 2, easgd).
#include "worker/async/replica.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "proto/strata/job.pb.h"
#include "worker/async/training_strategy.h"

namespace strata {
namespace {

constexpr uint32_t kDim = 3;
constexpr size_t kDense = ModelTables::kDenseRowDim;

ReplicaOptions Options(float rate, float alpha) {
  OptimizerSpec sgd;
  sgd.type = OptimizerType::kSgd;
  sgd.learning_rate = rate;
  ReplicaOptions options;
  options.tables.resize(2);
  options.tables[0].segments = {{"embedding", 2, {}, sgd}, {"weight", 1, {}, sgd}};
  options.tables[1].id = TableId(1);
  options.tables[1].kind = TableKind::kDense;
  options.tables[1].segments = {{"dense", kDense, {}, sgd}};
  options.dense_rows = 1;
  options.alpha = alpha;
  return options;
}

// The centre as servers keep it: sums of what was pushed, in float.
struct Centre {
  std::map<uint64_t, std::vector<float>> rows;
  std::vector<float> dense = std::vector<float>(kDense, 0.0f);

  std::vector<float>& Row(uint64_t position) {
    auto [it, fresh] = rows.try_emplace(position);
    if (fresh) {
      for (uint32_t e = 0; e < kDim; ++e) {
        it->second.push_back(0.1f * static_cast<float>(e + 1) +
                             0.01f * static_cast<float>(position));
      }
    }
    return it->second;
  }
  void Read(const KeyList& keys, ParameterBlock* out) {
    out->rows.clear();
    for (const uint64_t p : keys.positions) {
      const std::vector<float>& row = Row(p);
      out->rows.insert(out->rows.end(), row.begin(), row.end());
    }
    out->dense = dense;
  }
  void Add(const Gradient& delta) {
    REQUIRE(delta.examples == 1);
    REQUIRE(delta.rows.size() == delta.positions.size() * kDim);
    for (size_t k = 0; k < delta.positions.size(); ++k) {
      std::vector<float>& row = Row(delta.positions[k]);
      for (uint32_t e = 0; e < kDim; ++e) row[e] += delta.rows[k * kDim + e];
    }
    for (size_t e = 0; e < kDense; ++e) dense[e] += delta.dense[e];
  }
};

RoutedKeys Keys(const std::set<uint64_t>& positions) {
  RoutedKeys routed;
  routed.keys = std::vector<uint64_t>(positions.begin(), positions.end());
  routed.positions = routed.keys;
  if (!routed.keys.empty()) routed.runs = {{0, 0, routed.keys.size()}};
  return routed;
}

// The gradient of (x - target)^2 / 2 over two examples (sums, as models give them).
constexpr double Target(uint64_t position, uint32_t e) {
  return 0.3 * static_cast<double>(position % 5) - 0.2 * e;
}

std::shared_ptr<const Gradient> GradientAt(const RoutedKeys& keys, const float* rows,
                                           const float* dense) {
  auto g = std::make_shared<Gradient>();
  g->examples = 2;
  g->keys = keys.keys;
  g->positions = keys.positions;
  g->runs = keys.runs;
  for (size_t k = 0; k < keys.positions.size(); ++k) {
    for (uint32_t e = 0; e < kDim; ++e) {
      g->rows.push_back(
          static_cast<float>(2 * (rows[k * kDim + e] - Target(keys.positions[k], e))));
    }
  }
  for (size_t e = 0; e < kDense; ++e) {
    g->dense.push_back(static_cast<float>(2 * (dense[e] - Target(e, 1))));
  }
  return g;
}

// One lane of the reference: algorithm 1 of the paper on doubles, with rows that come from the
// centre at touch and go at exchange, but for those of the batch whose step comes next.
struct ReferenceLane {
  std::map<uint64_t, std::vector<double>> x;
  std::vector<double> dense;
};
struct Reference {
  double rate, alpha;
  std::map<uint64_t, std::vector<double>> centre;
  std::vector<double> dense = std::vector<double>(kDense, 0.0);

  std::vector<double>& Row(uint64_t p) {
    auto [it, fresh] = centre.try_emplace(p);
    if (fresh) {
      for (uint32_t e = 0; e < kDim; ++e) {
        it->second.push_back(0.1f * static_cast<float>(e + 1) + 0.01f * static_cast<float>(p));
      }
    }
    return it->second;
  }
  std::vector<double>& Touch(ReferenceLane& lane, uint64_t p) {
    if (lane.dense.empty()) lane.dense = dense;
    return lane.x.try_emplace(p, Row(p)).first->second;
  }
  void Step(ReferenceLane& lane, const std::set<uint64_t>& batch, bool exchange) {
    std::map<uint64_t, std::vector<double>> before;
    const std::set<uint64_t> held = [&] {
      std::set<uint64_t> keys;
      for (const auto& [p, row] : lane.x) keys.insert(p);
      return keys;
    }();
    for (const uint64_t p : batch) before[p] = Touch(lane, p);
    const std::vector<double> dense_before = lane.dense;
    if (exchange) Exchange(lane, held, batch);
    for (const uint64_t p : batch) {
      for (uint32_t e = 0; e < kDim; ++e) lane.x[p][e] -= rate * (before[p][e] - Target(p, e));
    }
    for (size_t e = 0; e < kDense; ++e) lane.dense[e] -= rate * (dense_before[e] - Target(e, 1));
  }
  void Exchange(ReferenceLane& lane, const std::set<uint64_t>& held,
                const std::set<uint64_t>& kept) {
    for (const uint64_t p : held) {
      for (uint32_t e = 0; e < kDim; ++e) {
        const double d = alpha * (lane.x[p][e] - Row(p)[e]);
        lane.x[p][e] -= d;
        Row(p)[e] += d;
      }
      if (!kept.contains(p)) lane.x.erase(p);
    }
    for (size_t e = 0; e < kDense; ++e) {
      const double d = alpha * (lane.dense[e] - dense[e]);
      lane.dense[e] -= d;
      dense[e] += d;
    }
  }
};

// A lane: the strategy's words carried out on a Replica and a Centre, one batch at a call.
class Lane {
 public:
  Lane(const ReplicaOptions& options, uint32_t tau, Centre* centre)
      : replica_(options), centre_(centre) {
    TrainingSpec training;
    training.set_mode("easgd");
    training.set_tau(tau);
    strategy_ = MakeTrainingStrategy(training);
  }

  void BeginTask(const std::vector<std::set<uint64_t>>& batches) {
    batches_.clear();
    for (const auto& b : batches) batches_.push_back(Keys(b));
    strategy_->BeginTask(batches.size(), 0);
    pending_ = strategy_->Next();
  }
  // Up to the local step of the next batch, or the end of the task. True while there are batches.
  bool Batch() {
    while (true) {
      const LaneAction a = pending_;
      switch (a.kind) {
        case LaneActionKind::kPull: {
          std::vector<const RoutedKeys*> keys;
          for (uint64_t b = a.first; b < a.end; ++b) keys.push_back(&batches_[b]);
          first_ = a.first;
          centre_->Read(replica_.Plan(keys), replica_.pulled());
          replica_.Pulled();
          break;
        }
        case LaneActionKind::kGradient:
          gradient_ =
              GradientAt(batches_[a.first], replica_.Rows(a.first - first_), replica_.dense());
          break;
        case LaneActionKind::kExchange:
          centre_->Add(*replica_.Exchange());
          break;
        case LaneActionKind::kLocalStep:
          REQUIRE(replica_.LocalStep(a.first - first_, *gradient_).ok());
          pending_ = strategy_->Next();
          return true;
        case LaneActionKind::kTaskDone:
          return false;
        default:
          break;
      }
      pending_ = strategy_->Next();
    }
  }
  Replica& replica() { return replica_; }

 private:
  Replica replica_;
  Centre* const centre_;
  std::unique_ptr<TrainingStrategy> strategy_;
  std::vector<RoutedKeys> batches_;
  LaneAction pending_;
  uint64_t first_ = 0;
  std::shared_ptr<const Gradient> gradient_;
};

void CheckClose(const Centre& centre, const Reference& reference) {
  REQUIRE(centre.rows.size() == reference.centre.size());
  for (const auto& [p, row] : reference.centre) {
    for (uint32_t e = 0; e < kDim; ++e)
      CHECK(centre.rows.at(p)[e] == Approx(row[e]).epsilon(0).margin(1e-6));
  }
  for (size_t e = 0; e < kDense; ++e) {
    REQUIRE(centre.dense[e] == Approx(reference.dense[e]).epsilon(0).margin(1e-6));
  }
}

TEST_CASE("easgd's equations hold to 1e-6 of float64", "[replica]") {
  for (const uint32_t tau : {1u, 2u, 4u, 7u}) {
    INFO("tau " << tau);
    std::mt19937_64 random(tau);
    const float rate = 0.13f, alpha = 0.3f;
    Centre centre;
    Reference reference{rate, alpha, {}};
    constexpr size_t kLanes = 3;
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<ReferenceLane> reference_lanes(kLanes);
    for (size_t l = 0; l < kLanes; ++l) {
      lanes.push_back(std::make_unique<Lane>(Options(rate, alpha), tau, &centre));
    }
    for (int task = 0; task < 6; ++task) {
      const size_t l = random() % kLanes;
      std::vector<std::set<uint64_t>> batches(1 + random() % 12);
      for (auto& b : batches) {
        for (int k = 0; k < 4; ++k) b.insert(random() % 12);
      }
      // Lanes take turns task by task: within one, others would change what it pulls between a
      // pull and its exchange, which is another schedule of the same equations.
      lanes[l]->BeginTask(batches);
      ReferenceLane& lane = reference_lanes[l];
      for (size_t b = 0; b < batches.size(); ++b) {
        REQUIRE(lanes[l]->Batch());
        // A window's rows come from the centre as it is when the window is opened.
        reference.Step(lane, batches[b], b > 0 && b % tau == 0);
      }
      REQUIRE_FALSE(lanes[l]->Batch());
      std::set<uint64_t> held;
      for (const auto& [p, row] : lane.x) held.insert(p);
      reference.Exchange(lane, held, {});
      CHECK(lane.x.empty());
      CheckClose(centre, reference);
    }
  }
}

TEST_CASE("a forgotten replica starts from the centre", "[replica]") {
  Centre centre;
  Lane lane(Options(0.5f, 0.5f), 2, &centre);
  lane.BeginTask({{1, 2}, {2, 3}, {1}});
  REQUIRE(lane.Batch());
  REQUIRE(lane.Batch());
  const std::vector<float> before = centre.dense;
  lane.replica().Forget();
  lane.BeginTask({{1, 2}});
  REQUIRE(lane.Batch());
  // Its first gradient was at the centre: one step from there.
  for (size_t e = 0; e < kDense; ++e) {
    const double g = before[e] - Target(e, 1);
    REQUIRE(lane.replica().dense()[e] == Approx(before[e] - 0.5 * g).epsilon(0).margin(1e-6));
  }
  REQUIRE_FALSE(lane.Batch());
}

TEST_CASE("an exchange that was done before takes the copy back to the centre", "[replica]") {
  Centre centre;
  Lane lane(Options(0.5f, 0.5f), 1, &centre);
  lane.BeginTask({{1, 2}, {2, 3}});
  REQUIRE(lane.Batch());
  const RoutedKeys keys = Keys({2, 3});
  const RoutedKeys* const batch[] = {&keys};
  Replica& replica = lane.replica();
  centre.Read(replica.Plan(batch), replica.pulled());
  replica.Pulled();
  CHECK(replica.Rows(0)[0] != centre.Row(2)[0]);
  replica.Exchange();  // and the server says that it had the window
  replica.Reset();
  CHECK(std::equal(replica.Rows(0), replica.Rows(0) + kDim, centre.Row(2).begin()));
  CHECK(std::equal(centre.dense.begin(), centre.dense.end(), replica.dense()));
}

// x^2 / 2, one lane, tau 1: stable exactly for 0 <= rate <= 2, 0 <= alpha <= (4 - 2 rate) / (4 -
// rate).
bool Stable(float rate, float alpha) {
  Replica replica(Options(rate, alpha));
  std::vector<float> centre(kDense, 0.0f);
  bool has_x = false;
  centre[0] = 1.0f;
  for (int t = 0; t < 20000; ++t) {
    replica.Plan({});
    replica.pulled()->rows.clear();
    replica.pulled()->dense = centre;
    replica.Pulled();
    Gradient g;
    g.examples = 1;
    g.dense.assign(replica.dense(), replica.dense() + kDense);  // of x before the exchange
    if (has_x) {
      const auto delta = replica.Exchange();
      for (size_t e = 0; e < kDense; ++e) centre[e] += delta->dense[e];
    }
    has_x = true;
    const RoutedKeys none;
    const RoutedKeys* const batch[] = {&none};
    replica.Plan(batch);
    replica.pulled()->rows.clear();
    replica.Pulled();
    REQUIRE(replica.LocalStep(0, g).ok());
    if (std::abs(replica.dense()[0]) > 1e3f || std::abs(centre[0]) > 1e3f) return false;
  }
  return true;
}

TEST_CASE("easgd is stable exactly where theory says", "[replica]") {
  for (const double rate : {0.1, 0.5, 1.0, 1.5, 1.9}) {
    const double limit = (4 - 2 * rate) / (4 - rate);
    INFO("rate " << rate << ", limit " << limit);
    CHECK(Stable(static_cast<float>(rate), static_cast<float>(0.98 * limit)));
    if (1.05 * limit <= 1) {
      CHECK_FALSE(Stable(static_cast<float>(rate), static_cast<float>(1.05 * limit)));
    }
  }
  CHECK_FALSE(Stable(2.02f, 0.01f));
}

// Downpour's copy: what is pulled replaces it.
TEST_CASE("a copy without alpha is what was pulled, and steps on it", "[replica]") {
  Centre centre;
  Replica replica(Options(0.25f, 0.0f));
  const RoutedKeys a = Keys({1, 4}), b = Keys({2, 4});
  const RoutedKeys* const both[] = {&a, &b};
  centre.Read(replica.Plan(both), replica.pulled());
  replica.Pulled();
  const auto g = GradientAt(a, replica.Rows(0), replica.dense());
  const float before = replica.Rows(0)[kDim];  // of key 4
  REQUIRE(replica.LocalStep(0, *g).ok());
  CHECK(replica.Rows(1)[kDim] == std::fma(-0.25f, g->rows[kDim] / 2, before));
  CHECK(replica.Rows(1)[0] == centre.Row(2)[0]);
  const RoutedKeys* const one[] = {&b};
  centre.Read(replica.Plan(one), replica.pulled());
  replica.Pulled();
  CHECK(replica.Rows(0)[kDim] == before);
}

}  // namespace
}  // namespace strata
