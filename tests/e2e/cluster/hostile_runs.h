// Jobs whose fields name hostile places, many at once on one embedded cluster, and what is to come
// of each.
#ifndef STRATA_TESTS_E2E_CLUSTER_HOSTILE_RUNS_H_
#define STRATA_TESTS_E2E_CLUSTER_HOSTILE_RUNS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/faulty_files.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {

enum class Outcome : uint8_t {
  kFails,  // is refused, or ends FAILED
  kWaits,  // goes on when the disk does; says what it waits for
  kSays,   // ends SUCCEEDED, and says what was in the way
  kWorks,
};

struct HostileCase {
  std::string field;
  std::string path;
  Outcome outcome = Outcome::kFails;
  std::string fault = {};  // the folder that must have failed some call; "": none
  std::string named = {};  // how messages show the path; "": as it is
  bool overwrite = false;
};

// `field`: one that names a place, as "spec.storage.directory".
void SetPlace(const std::string& field, const std::string& path, JobSpec& spec);

bool IsFinal(JobState state);
// State and conditions.
std::string Said(const JobStatus& status);

// One scheduler, one server and workers, whose files are FaultyFiles. One at a time in a process.
// What goes wrong in the set-up fails the test.
class HostileCluster {
 public:
  HostileCluster();
  ~HostileCluster();
  HostileCluster(const HostileCluster&) = delete;
  HostileCluster& operator=(const HostileCluster&) = delete;

  // Anew, with these data roots.
  void Start(PathPolicy paths);

  const std::string& folder() const { return folder_.path(); }
  // A fresh folder of a case.
  std::string NewFolder();
  // A small one that works.
  const TrainingJob& job() const { return job_; }
  const FaultyFiles& files() const { return *files_; }
  SchedulerClient& scheduler() { return cluster_->scheduler(); }

  absl::StatusOr<JobRef> Submit(TrainingJob job, bool overwrite = false);
  JobStatus Status(const JobRef& ref);
  void Cancel(const JobRef& ref);
  // A good job ends well.
  JobStatus TrainWell(TrainingJob job);
  // Copies a whole checkpoint to `path`.
  void CopyCheckpoint(const std::string& path);

 private:
  const ScratchFolder folder_;
  std::string checkpoint_;
  FaultyFiles* files_ = nullptr;
  TrainingJob job_;
  std::unique_ptr<EmbeddedCluster> cluster_;
  int folders_ = 0, jobs_ = 0;
};

// Cases on their way, some at once. Each is checked when it has come to its end.
class HostileRuns {
 public:
  explicit HostileRuns(HostileCluster& cluster) : cluster_(cluster) {}

  void Add(HostileCase c);
  void Finish();
  int count() const { return count_; }

 private:
  struct Run {
    HostileCase c;
    JobRef ref;
    absl::Time since;
    bool cancelled = false;
  };

  bool Met(const HostileCase& c) const;
  void Look();
  // Whether it has come to its end.
  bool Done(Run& run);

  HostileCluster& cluster_;
  std::deque<Run> running_;
  int count_ = 0;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_HOSTILE_RUNS_H_
