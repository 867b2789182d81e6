// How a running job is shown on stderr: one line that is rewritten on a terminal, plain lines
// elsewhere.
// Tested by tests/tools/cli/base/job_text_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_PROGRESS_H_
#define STRATA_TOOLS_CLI_BASE_PROGRESS_H_

#include <cstdio>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_field.h"
#include "proto/strata/job.pb.h"

namespace strata {

struct ProgressOptions {
  std::FILE* out = stderr;
  bool terminal = false;  // rewrite one line
  bool color = false;
  int width = 80;  // columns of the terminal
  // Plain lines come at most this often, besides changes of state and evaluations.
  absl::Duration plain_interval = absl::Seconds(5);

  // For this process's stderr: a terminal is one unless TERM is "dumb"; colour unless NO_COLOR is
  // set to anything.
  static ProgressOptions ForStderr();
};

// The line for a status, without its end, at most `width` columns (0: no bar, no limit).
std::string ProgressLine(const JobStatus& status, int width);

// Thread-safe.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(ProgressOptions options) : options_(options) {}
  ~ProgressPrinter() { Finish(); }

  // Shows conditions and evaluations that are new, and the progress itself.
  void Show(const JobStatus& status, absl::Time now);

  // A line of its own, above the progress.
  void Note(const std::string& line);

  // Leaves the last progress line standing. Idempotent.
  void Finish();

 private:
  void PrintLine(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ProgressOptions options_;
  absl::Mutex mu_;
  bool open_line_ ABSL_GUARDED_BY(mu_) = false;
  // As of the last status. The scheduler keeps the latest: their number and places say nothing.
  google::protobuf::RepeatedPtrField<JobCondition> conditions_ ABSL_GUARDED_BY(mu_);
  uint64_t evaluated_ ABSL_GUARDED_BY(mu_) = 0;  // step of the last evaluation shown
  absl::Time last_plain_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::string last_line_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_PROGRESS_H_
