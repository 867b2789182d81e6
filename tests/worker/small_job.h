// A small job as the scheduler hands it to a worker, and its input, which is no file.
#ifndef STRATA_TESTS_WORKER_SMALL_JOB_H_
#define STRATA_TESTS_WORKER_SMALL_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/reading/batch_source.h"
#include "worker/data/reading/data_access.h"
#include "worker/step/batch.h"

namespace strata::testing {

// `lines` lines of `file`, three to a task; of the shape of SmallTables.
InputIndex SmallIndex(const std::string& file, uint32_t lines);

// Job 5 in generation 2 on one server, "0", of four shards at map epoch 3. One lane, batches of
// three lines, one epoch: bsp takes a step for three of the `lines`, and so does a task.
WorkerJobDirective SmallDirective(const std::string& mode, uint32_t lines);

// Gives MadeUpSources, which it outlives. Thread-safe.
class MadeUpData : public DataAccess {
 public:
  // SmallIndex of six lines.
  absl::StatusOr<InputIndex> BuildIndex(const JobSpec& spec, const std::vector<std::string>& files,
                                        const IndexOptions& options) override;
  absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec& spec, const InputIndex& index,
                                                    const DataShape& shape) override;

  // What both return from now on where they are asked for `file`.
  void Fail(const std::string& file, absl::Status status);
  std::vector<std::string> opened() const;
  std::vector<std::string> indexed() const;
  // Of ReadLines of its sources, in turn.
  std::vector<BatchLimit> limits() const;
  void Note(const BatchLimit& limit);

 private:
  absl::Status StatusOf(const std::string& file);

  mutable absl::Mutex mu_;
  std::string bad_file_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> opened_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> indexed_ ABSL_GUARDED_BY(mu_);
  std::vector<BatchLimit> limits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_SMALL_JOB_H_
