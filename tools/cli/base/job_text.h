// How jobs and nodes are shown: JSON for programs, text for people.
#ifndef STRATA_TOOLS_CLI_BASE_JOB_TEXT_H_
#define STRATA_TOOLS_CLI_BASE_JOB_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// True in SUCCEEDED, FAILED and CANCELLED.
bool IsFinal(JobState state);

// "running", "succeeded", ...
std::string StateName(JobState state);

// 1234567 as "1,234,567".
std::string WithCommas(uint64_t number);

// Seconds as "12 s", "3:05", "2:03:05".
std::string Duration(double seconds);

// How far the checkpoint is that is being written: "1.2 GiB of 3.4 GiB, 12 s left". REQUIRES: one
// is.
std::string CheckpointText(const JobStatus& status);

// One JSON object on one line, camelCase, every field; numbers that do not exist (yet) are null.
// auc, logloss, evaluatedExamples, evaluatedPositives and evaluatedStep are those of the reported
// evaluation, and of its first label (proto/job/evaluation_result.h). `tasks` of an evaluation:
// each label's, where a job has several. `error` is the last condition's message of a failed job.
std::string JobJson(const JobStatus& status);

// "AUC 0.8125", or that there is none, and why: labels of one class. REQUIRES: no tasks.
std::string AucText(const EvaluationResult& result);

// "loss 0.4321, AUC 0.8125" over recent steps, with `auc_name` for ", AUC"; the loss alone where
// the first label is not binary, one class was missing, or the model predicted what is no number.
std::string TrainingText(const JobStatus& status, absl::string_view auc_name);

// "AUC 0.8125, logloss 0.4012"; with several labels, of each: "click: AUC 0.8125, ...; stars: mse
// 0.9120, mae 0.7021". What was not computed is left out. Where predictions are no numbers, that
// and the remedy.
std::string EvaluationText(const EvaluationResult& result);

// What a finished job says to a person, several lines with their ends.
std::string JobSummary(const JobStatus& status);

// Everything about a job for `strata status JOB`.
std::string JobDetails(const JobStatus& status);

// A table with a header line; "no jobs" without any.
std::string JobTable(const ListJobsReply& jobs);
std::string JobListJson(const ListJobsReply& jobs);

std::string ClusterTable(const ClusterStatus& cluster);
std::string ClusterJson(const ClusterStatus& cluster);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_JOB_TEXT_H_
