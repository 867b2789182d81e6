// A cluster whose processes are struck while jobs of one mode run in it, one after the other. Each
// is judged by its mode's oracle when it ends.
#ifndef STRATA_TESTS_FAULTS_MATRIX_STRUCK_CLUSTER_H_
#define STRATA_TESTS_FAULTS_MATRIX_STRUCK_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/faults/matrix/fault_matrix.h"
#include "tests/faults/matrix/own_clocks.h"
#include "tests/faults/matrix/scenes.h"
#include "tests/faults/proxy/network_fault.h"
#include "tests/faults/proxy/proxy.h"

namespace strata::testing {

class StruckCluster {
 public:
  struct Options {
    Mode mode = Mode::kBsp;
    std::string folder;  // of the cluster and of what jobs read and write
    uint64_t seed = 1;   // of who is struck, and for how long
    // Three servers, of which two have jobs' shards and each shard is on two.
    bool copies = false;
    // Each process sees a wall clock of its own, which RunClocks sets, and none meets a proxy.
    bool own_clocks = false;
    // Blows at each role of a scene, in this order.
    int kills = 1;
    int stops = 1;
    int network_faults = 2;
  };

  // Trains the job once without a disturbance.
  explicit StruckCluster(const Options& options);

  // Runs one job, strikes at each standstill of the scene's marker, and judges the end.
  void Run(const Scene& scene);
  // The same while a server that was killed recovers.
  void RunRecovery();
  // The same of a job with copies, at each standstill of any server.
  void RunCopies(const CopiesScene& scene);

  // The same, but at each standstill the clock of one process is set: by an hour forth, by two
  // back, and by one forth, role by role. Nobody is lost by that.
  void RunClocks(const Scene& scene);

  const FaultMatrix& matrix() const { return matrix_; }
  // Network faults of each kind that some connection met, and bits turned in messages.
  const std::map<FaultKind, uint64_t>& network_faults() const { return network_faults_; }
  uint64_t flips() const { return flips_; }

 private:
  struct Begun {
    uint64_t fault;
    FaultMatrix::Cell cell;
    FaultKind kind;
  };

  static bool Over(const JobStatus& status);
  // Comes to the phase at hand again and again; has the model that the calm job has.
  TrainingJob JobNow() const;
  // Kills the marker, which is no part of a job now, starts it with its failpoints, and submits.
  void Begin(const std::string& marker, const std::string& failpoints);
  std::string Name(Role role);
  // Of a process other than that one.
  std::string Other(Role role, const std::string& name);
  // Waits until it does. False: the job has ended before.
  bool StandsStill(const std::string& marker);
  // Strikes `role` while the marker stands, and lets the marker go on. `again`: failpoints of a
  // marker that is started again.
  void Strike(Role role, Blow blow, const std::string& marker, const std::string& again);
  NetworkLink LinkOf(Role role, const std::string& victim);
  // Of each kind one, in an order that is drawn, before any comes again.
  NetworkFault NextFault(bool may_flip);
  // Begins a fault of the network at connections of `victim`.
  void StrikeNetwork(Role role, const std::string& victim);
  // Counts what the faults of the network met, all of which are over.
  void CountNetworkFaults();

  // struck_copies.cc
  // Starts all servers anew with the scene's failpoints, and submits.
  void BeginCopies(const CopiesScene& scene);
  // Waits until some server stands still, and loses one of a whole chain where the phase needs it.
  // Empty: the job has ended before.
  std::string AwaitStanding(const CopiesScene& scene);
  // Loses one server of a chain that has all its copies, and starts it again.
  void Lose(const CopiesScene& scene);
  // Lets all servers go on that stand still, but that one. Two copies of a shard that stood still
  // for a lease while the job opens, when they have nothing to lose, would be replaced.
  void ReleaseBut(const std::string& victim);
  void Release() { ReleaseBut(""); }
  void EndCopies();

  // struck_clocks.cc
  // Waits for the job's end, judges it, and looks that nobody was lost.
  void EndClocks();

  Blow BlowOf(int turn) const;
  int Turns() const { return o_.kills + o_.stops + o_.network_faults; }
  // Waits for the job's end, and judges it.
  void End();
  void Judge(const JobStatus& end);
  uint64_t WorkerChanges();

  const Options o_;
  const std::unique_ptr<Proxy> proxy_ = Proxy::Start();
  OwnClocks clocks_;
  ProcessCluster cluster_;
  std::mt19937_64 random_;
  std::vector<FaultKind> kinds_;  // that come next
  const TrainingJob calm_job_;
  JobStatus calm_;
  FaultMatrix matrix_;
  std::map<FaultKind, uint64_t> network_faults_;
  uint64_t flips_ = 0;

  // Of the job at hand.
  Phase phase_ = Phase::kPull;
  uint64_t job_ = 0;
  absl::Time begun_at_;
  std::vector<Begun> begun_;
  // With copies: the configuration of each server of the job's in which one was lost already.
  std::map<int, uint64_t> lost_in_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_MATRIX_STRUCK_CLUSTER_H_
