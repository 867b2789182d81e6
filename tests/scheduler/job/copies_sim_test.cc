// Copies under everything that can happen to them: kills, restarts, openings that take long or are
// held up, an emptied disk, ends that nobody sees, a scheduler that comes back. Whoever leads has
// all that was committed (CopiesCluster checks it with each directive), and nothing rolls back. A
// failing seed is printed and replays exactly.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/job/copies_cluster.h"
#include "tests/seed.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = CopiesCluster::kLease;

class Sim {
 public:
  explicit Sim(uint64_t seed)
      : random_(seed),
        replicas_(seed % 3 == 0 ? 3 : 2),
        cluster_(seed % 2 == 0 ? "aabbcc" : "abcd", 1 + static_cast<uint32_t>(seed % 3),
                 [this](JobSpec& spec) {
                   spec.mutable_storage()->set_replicas(replicas_);
                   spec.mutable_recovery()->set_replace_after("1h");
                 }) {}

  void Run(int events) {
    cluster_.Until([this] { return cluster_.job().phase() == TRAINING; });
    for (int i = 0; i < events; ++i) {
      Happen();
      Speak();
    }
    for (const std::string& name : cluster_.names()) {
      cluster_.Stall(name, false);
      cluster_.SetSlow(name, false);
      if (!cluster_.IsAlive(name)) cluster_.Start(name);
    }
    cluster_.Pass(kLease * 5);
    cluster_.Until([this] { return IsWhole(); });
    std::vector<uint64_t> before;
    for (int slot = 0; slot < Slots(); ++slot) before.push_back(cluster_.committed(slot));
    cluster_.Until([&] {
      for (int slot = 0; slot < Slots(); ++slot) {
        if (cluster_.committed(slot) < before[static_cast<size_t>(slot)] + 3) return false;
      }
      return true;
    });
    CHECK(cluster_.job().generation() == 1);
    CHECK(cluster_.job().rollbacks() == 0);
    CHECK(cluster_.Says("UnderReplicated").empty());
  }

 private:
  uint64_t Draw(uint64_t below) { return random_() % below; }
  std::string Any() {
    const std::vector<std::string> names = cluster_.names();
    return names[Draw(names.size())];
  }
  int Slots() const { return cluster_.job().servers_size(); }

  bool IsWhole() const {
    const JobStateRecord job = cluster_.job();
    return std::all_of(job.servers().begin(), job.servers().end(), [&](const ServerSlot& slot) {
      return slot.chain().full() == replicas_ &&
             slot.chain().members_size() == static_cast<int>(replicas_);
    });
  }

  // What one disk holds may go only where others hold all of it.
  bool AllHold() const {
    const std::vector<std::string> names = cluster_.names();
    return std::all_of(names.begin(), names.end(),
                       [this](const std::string& name) { return cluster_.HoldsAll(name); });
  }

  void Happen() {
    const std::string name = Any();
    switch (Draw(14)) {
      case 0:
      case 1:
        cluster_.Kill(name);
        break;
      case 2:
      case 3:
      case 4:
        if (!cluster_.IsAlive(name)) cluster_.Start(name);
        break;
      case 5:
        cluster_.SetSlow(name, Draw(2) == 0);  // it opens what it has until it is not slow any more
        cluster_.Restart(name);
        break;
      case 6:
        cluster_.RestartScheduler();
        break;
      case 7:
        cluster_.Stall(name, Draw(3) == 0);
        break;
      case 8:
        cluster_.SeeEnds(Draw(2) == 0);
        break;
      case 9:
        cluster_.Pass(kLease * static_cast<double>(Draw(15)) / 10);
        break;
      case 10:
        if (!IsWhole() || !AllHold() || wiped_ > 0) break;
        cluster_.Kill(name);
        cluster_.Wipe(name);
        wiped_ = 1;
        break;
      case 11:
        cluster_.SetSlow(name, false);
        break;
      case 12:
        if (cluster_.IsAlive(name)) cluster_.Reopen(name, "its tier is damaged");
        break;
      default:
        break;
    }
    if (wiped_ > 0 && IsWhole() && AllHold()) wiped_ = 0;
  }

  // Some do, in some order; then some work.
  void Speak() {
    std::vector<std::string> names = cluster_.names();
    std::shuffle(names.begin(), names.end(), random_);
    names.resize(Draw(names.size() + 1));
    cluster_.SyncServers(names);
    if (Draw(3) > 0) cluster_.Work();
    if (Draw(4) == 0) cluster_.Round();
  }

  std::mt19937_64 random_;
  const uint32_t replicas_;
  CopiesCluster cluster_;
  int wiped_ = 0;
};

TEST_CASE("copies lose nothing that was committed", "[scheduler][chains][seeds]") {
  const uint64_t seed = GENERATE(Catch::Generators::from_range(Seeds("copies", 1, 50)));
  INFO("seed " << seed);
  Sim(seed).Run(150);
}

}  // namespace
}  // namespace strata::scheduler
