// Defaults and limits of spec.labels, spec.sampleWeight and spec.evaluation.metrics.
// Tested by tests/proto/job/label_spec_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_LABEL_SPEC_H_
#define STRATA_PROTO_JOB_FIELDS_LABEL_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/fields/task_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {

// The tasks of a job whose labels are resolved: at least one. Without spec.labels it is the data's
// one label, called as its column, or `label`.
std::vector<TaskSpec> TasksOf(const JobSpec& spec);

// What is computed of an evaluation; each of those labels that it fits.
struct MetricsPlan {
  bool by_task = false;  // whether tasks are told of at all
  // Given: of every label that it fits. Otherwise what fits each label's kind.
  bool given = false;
  bool auc = false, logloss = false, ne = false, calibration = false, mse = false, mae = false;
  std::string gauc_field;  // empty: none
};
MetricsPlan MetricsOf(const JobSpec& spec);

namespace spec {

// See ResolveJob (job_spec.h). Wants data and training resolved.
absl::Status ResolveLabels(JobSpec& job);

// Wants labels resolved.
absl::Status CheckMetrics(const JobSpec& job);

}  // namespace spec
}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_LABEL_SPEC_H_
