// A job file, and what is said of it where something in it is wrong.
#ifndef STRATA_TESTS_TOOLS_CLI_JOB_EXAMPLE_JOB_H_
#define STRATA_TESTS_TOOLS_CLI_JOB_EXAMPLE_JOB_H_

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/job/file.h"

namespace strata {

inline constexpr char kJob[] = R"(apiVersion: strata/v1
kind: TrainingJob
metadata:
  name: clicks
spec:
  data:
    format: criteo
    train: [train.tsv, ../more/day1.tsv]
    eval: [/data/test.tsv]
  model:
    type: deepfm
    hidden: [64, 32]
  training:
    lanes: 4
    batchSize: 128
)";

inline absl::StatusOr<TrainingJob> Parse(const std::string& text,
                                         const std::vector<std::string>& overrides = {}) {
  return ParseJobText(text, "job.yaml", "/jobs", overrides);
}

// The message for kJob with `from` (which must be there) replaced by `to`; "OK" when it is right.
inline std::string Problem(const std::string& from, const std::string& to) {
  REQUIRE(std::string(kJob).find(from) != std::string::npos);
  absl::StatusOr<TrainingJob> job = Parse(absl::StrReplaceAll(kJob, {{from, to}}));
  if (job.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

inline std::string SetProblem(const std::string& override_text) {
  absl::StatusOr<TrainingJob> job = Parse(kJob, {override_text});
  if (job.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

}  // namespace strata

#endif  // STRATA_TESTS_TOOLS_CLI_JOB_EXAMPLE_JOB_H_
