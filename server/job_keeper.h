// The jobs of a server over their lives: opening (on a thread of its own), open, replaced by a new
// generation, closed.
#ifndef STRATA_SERVER_JOB_KEEPER_H_
#define STRATA_SERVER_JOB_KEEPER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/control.pb.h"
#include "server/data_service.h"
#include "server/job/server_job.h"
#include "storage/gpu/backend.h"
#include "storage/log/update_log.h"

namespace strata::server {

// Follow, ReopenDamaged, Fence and destruction come from one thread; the rest from any.
class JobKeeper {
 public:
  struct Options {
    std::string root;  // of jobs that name no directory
    std::string name;  // of the server: its folder below a directory that a job names
    uint64_t log_direct_from_bytes = storage::UpdateLogOptions{}.direct_from_bytes;
    uint64_t tier_memtable_bytes = 0;  // as in ServerOptions
    // The GPU of this server; null: it has none.
    storage::gpu::GpuBackendFactory make_gpu;
    PathPolicy paths;        // where jobs may keep rows, checkpoints and removals
    ServerJob::Options job;  // what is named there outlives the keeper, which waits by its timer
    DataService* service = nullptr;
  };
  // How long after an opening that may yet succeed (disk full, checkpoint unreachable), and after a
  // tier's second damage, the next try.
  static constexpr absl::Duration kReopenAfter = absl::Seconds(2);

  explicit JobKeeper(Options options);
  // Closes all jobs; what they have on disk stays.
  ~JobKeeper();

  void Follow(const NodeDirective& directive);
  // Opens jobs anew whose SSD tier was found damaged: their shards are recovered as after a restart
  // of this process, which is what workers and the scheduler take it for (another incarnation in
  // replies, `reopened` in reports). At level memory there is nothing to recover from: LOST.
  void ReopenDamaged();
  // As the destructor; Follow must not be called any more.
  void CloseAll();
  // The session was fenced: nothing is served until a directive of a new session names it.
  void Fence();

  std::vector<ServerJobReport> Reports() const;
  // Something is being opened, or a cut is ordered and not answered: report soon.
  bool Busy() const;
  std::vector<std::shared_ptr<ServerJob>> Jobs() const;

 private:
  struct Reopening {
    uint32_t times = 0;  // after the first opening
    std::string why;     // the last time
  };
  struct Entry {
    Generation generation;
    Reopening reopening;
    std::string root;
    ServerJobReport::State state = ServerJobReport::OPENING;
    std::string message;
    ServerJobDirective directive;  // the newest
    std::shared_ptr<ServerJob> job;
    std::thread opener;
    bool cancelled = false;
  };

  void FollowOne(const ServerJobDirective& directive);
  void StartOpening(const ServerJobDirective& directive, const Reopening& reopening);
  void Open(JobId id, ServerJobDirective directive, const Reopening& reopening);
  // True when the entry is settled; false: try again.
  bool OpenOnce(JobId id, const ServerJobDirective& directive, const Reopening& reopening);
  bool Settle(JobId id, Generation generation, ServerJobReport::State state, std::string message,
              std::shared_ptr<ServerJob> job);
  void Drop(JobId id);
  void RemoveFiles(JobId id, const ServerJobDirective& directive) const;
  std::string RootFor(const ServerJobDirective& directive) const;

  const Options options_;
  mutable Mutex mu_;
  std::map<JobId, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_KEEPER_H_
