// The two forms in which a job says what is predicted: spec.labels, and spec.data alone.
// Tested by tests/proto/job/fields/field_form_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_LABEL_FORM_H_
#define STRATA_PROTO_JOB_FIELDS_LABEL_FORM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// Both want the defaults of `job` resolved, and leave a job to be resolved once more. They add to
// `notes` what the other form means else, a line each without its end.

// As spec.labels. Of csv it is called as its column, where names of labels may be so, else `label`,
// as the label of other formats.
void ToNamedLabel(JobSpec& job, std::vector<std::string>& notes);

// As spec.data.columns.label of csv, and as other formats have it without a word. INVALID_ARGUMENT:
// several labels, or one that is more than a column; names the field.
absl::Status ToUnnamedLabel(JobSpec& job, std::vector<std::string>& notes);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_FIELDS_LABEL_FORM_H_
