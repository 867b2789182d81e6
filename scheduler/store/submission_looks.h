// Looks at the folders of submitted jobs for callers who do not wait for ever.
#ifndef STRATA_SCHEDULER_STORE_SUBMISSION_LOOKS_H_
#define STRATA_SCHEDULER_STORE_SUBMISSION_LOOKS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/control.pb.h"
#include "scheduler/store/submission.h"

namespace strata::scheduler {

// CheckPlaces, PrepareCheckpoints and FindOwnCheckpoints beside their callers. What is looked at at
// the same places waits for each other; a place that hangs keeps one thread. Thread-safe; the
// destructor waits for all looks.
class SubmissionLooks {
 public:
  // Places that hang at a time: each keeps a thread until its mount answers.
  static constexpr size_t kMostLooks = 64;

  // `timer` outlives this.
  SubmissionLooks(Timer* timer, PathPolicy paths);

  // While it lives nobody else has a turn of the same name, or of the same directory.
  class Turn {
   public:
    Turn(SubmissionLooks* looks, std::string name, std::string directory)
        : looks_(looks), name_(std::move(name)), directory_(std::move(directory)) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SubmissionLooks* const looks_;
    const std::string name_;
    const std::string directory_;
  };
  // `directory`: the one of checkpoints; "": there is none. DEADLINE_EXCEEDED: another one has it.
  // UNAVAILABLE: Stop was called.
  absl::StatusOr<std::unique_ptr<Turn>> AwaitTurn(const std::string& name,
                                                  const std::string& directory,
                                                  absl::Time deadline);

  // As CheckPlaces and (of a new job) CheckOutputs, and as PrepareCheckpoints. DEADLINE_EXCEEDED: a
  // place did not answer before `deadline`; names its field and path, and nothing comes of the look
  // any more. RESOURCE_EXHAUSTED: kMostLooks are under way. UNAVAILABLE: Stop was called.
  absl::Status LookAtPlaces(const SubmitRequest& request, absl::Time deadline,
                            Asked asked = Asked::kNew);
  absl::StatusOr<FoundCheckpoints> Look(const SubmitRequest& request, absl::Time deadline);
  // As Look, in the caller's thread.
  absl::StatusOr<FoundCheckpoints> LookHere(const SubmitRequest& request) const {
    return PrepareCheckpoints(request, paths_);
  }
  // `complete`, `damaged`, `data` and `other_format` are FindOwnCheckpoints of the job's directory;
  // none where it names none. Errors of that, or as Look's.
  absl::StatusOr<FoundCheckpoints> LookForOwn(const SubmitRequest& request,
                                              const JobIdentity& identity, absl::Time deadline);
  // Ends all waits.
  void Stop();

 private:
  struct State;
  using Looking =
      std::function<absl::StatusOr<FoundCheckpoints>(const SubmitRequest&, const LookingAt&)>;

  absl::StatusOr<FoundCheckpoints> Beside(const SubmitRequest& request, absl::Time deadline,
                                          const Looking& look_at, const std::string& queue = "");

  Timer* const timer_;
  const PathPolicy paths_;
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::string> names_ ABSL_GUARDED_BY(mu_);        // that have a turn
  std::set<std::string> directories_ ABSL_GUARDED_BY(mu_);  // that have one
  JobWork work_;                                            // last: looks use the rest
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_SUBMISSION_LOOKS_H_
