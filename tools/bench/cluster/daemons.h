// The real daemons as processes on loopback: a scheduler, servers and workers, with certificates or
// without.
#ifndef STRATA_TOOLS_BENCH_CLUSTER_DAEMONS_H_
#define STRATA_TOOLS_BENCH_CLUSTER_DAEMONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/cluster/child_process.h"
#include "tools/bench/job/train_case.h"

namespace strata::bench {

struct DaemonsOptions {
  std::string directory;
  int servers = 1;
  int workers = 1;
  int lease_ms = 10000;
  bool secure = false;  // TLS, by certificates of a CA that is made for it
};

// One thread at a time. The processes are named "scheduler", "server-0"..., "worker-0"..., have
// folders of their names, and end with it.
class Daemons {
 public:
  // Starts them; returns when all have registered.
  static absl::StatusOr<std::unique_ptr<Daemons>> Start(const DaemonsOptions& options);

  // Fills in the job's defaults and submits it. Returns its number.
  absl::StatusOr<uint64_t> Submit(TrainingJob job);

  SchedulerClient& scheduler() { return *client_; }
  // host:port of the scheduler.
  const std::string& address() const { return address_; }
  // Of a process of this role and name; null without certificates.
  absl::StatusOr<std::shared_ptr<ProcessTls>> Tls(Role role, const std::string& name);

  ChildProcess& process(const std::string& name) { return *processes_.at(name); }
  std::string folder(const std::string& name) const { return o_.directory + "/" + name; }
  // By SIGKILL.
  void Kill(const std::string& name) { processes_.at(name)->Kill(); }
  // Starts one that is not there, or not any more, in its folder.
  absl::Status StartOne(const std::string& name);
  // Until every process has registered as it now is; INTERNAL after 20 seconds.
  absl::Status AwaitRegistered();

  // What the workers have seen since each began. Workers that do not answer count as 0.
  TrainWindow Totals();
  // Waits until `examples` were seen. INTERNAL after `patience`.
  absl::Status Await(uint64_t examples, absl::Duration patience);
  // A window of that length from now on.
  absl::StatusOr<TrainWindow> Measure(double seconds);

 private:
  explicit Daemons(DaemonsOptions options) : o_(std::move(options)) {}
  absl::Status Open();
  absl::StatusOr<std::string> Certificate(Role role, const std::string& name);

  const DaemonsOptions o_;
  std::string address_;
  std::shared_ptr<ProcessTls> tls_;  // of operator "bench"
  std::unique_ptr<SchedulerClient> client_;
  std::map<std::string, std::unique_ptr<ChildProcess>> processes_;
  std::map<std::string, std::string> metrics_;  // of workers: host:port
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CLUSTER_DAEMONS_H_
