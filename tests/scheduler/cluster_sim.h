// ClusterState under everything that can happen to it, in one thread: nodes that die and come back,
// messages lost either way, restarts of the scheduler, failing manifests, damaged checkpoints. All
// of it follows from a seed.
#ifndef STRATA_TESTS_SCHEDULER_CLUSTER_SIM_H_
#define STRATA_TESTS_SCHEDULER_CLUSTER_SIM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {

struct SimSetup {
  bool bsp = true;
  bool memory = false;
  uint32_t servers = 2, workers = 2, lanes = 4;
  uint64_t every_steps = 0;
  std::string directory = "/c";
  // Among the faults: a node and the scheduler hear nothing of each other for a while, and the node
  // works on.
  bool cut_off = false;
};

// A cluster with one server to spare, and one job. What it finds wrong fails the case that runs.
class ClusterSim {
 public:
  ClusterSim(uint64_t seed, SimSetup setup);

  // Submits the job; then `fault_steps` with a fault at every `fault_every`th, by chance (0: none),
  // then peace until the job is over.
  void Run(int fault_steps, int fault_every);
  // Submits the job and lets it end while nothing befalls anybody but the scheduler, which stops or
  // refuses reports at every `fault_every`th step, by chance. Nobody lapses, nothing is rolled
  // back.
  void RunDeaf(int fault_every);
  // The job succeeded, with every step's effect once, and (async) each bad line counted once.
  void CheckResult();
  // Everybody hears that it is over, and drops it.
  void CheckClosed();

  const JobMachine& job() const { return *state_->jobs().at(1); }

 private:
  static constexpr uint32_t kEpochs = 3;
  // Async: of 4 tasks of 8 lines, of which each fifth is bad.
  static constexpr uint64_t kTasks = 4, kTaskLines = 8, kBadEvery = 5;
  static constexpr uint64_t kLines = kTasks * kTaskLines * kEpochs;
  static constexpr uint64_t kBadLines = kTasks * kTaskLines / kBadEvery * kEpochs;

  uint64_t Roll(uint64_t n) { return random_() % n; }
  void Submit();
  // What a driver of ClusterState does after every event.
  void Save();
  void Do(const FileWork& work);
  void CheckManifest(const Manifest& manifest, const SimFolder& folder);
  template <typename NodeT>
  void Sync(NodeT& node);
  std::string Told();
  void RestartScheduler();
  void CheckEvents();
  void Check();
  void CheckHosts(const std::vector<uint64_t>& hosts);
  void CutOff();
  void Fault();
  void Step();

  std::mt19937_64 random_;
  SimSetup setup_;
  SimJob job_;
  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  std::vector<SimWorker> workers_;
  std::map<std::string, std::string> store_;
  std::unique_ptr<ClusterState> state_;
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
  uint64_t incarnation_ = 0;
  uint64_t generation_ = 0;
  int event_checks_ = 0;
  std::vector<uint64_t> last_hosts_;  // by lane, the session that had it last; 0: none had
  uint64_t restarts_ = 0;
  bool faults_ = false;
  std::string cut_off_;  // node; empty: nobody is
};

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_CLUSTER_SIM_H_
