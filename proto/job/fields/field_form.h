// The two forms in which a job says what its data's columns are: spec.fields, and spec.data alone.
#ifndef STRATA_PROTO_JOB_FIELDS_FIELD_FORM_H_
#define STRATA_PROTO_JOB_FIELDS_FIELD_FORM_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Both want the defaults of `job` resolved, and leave a job that reads the same examples; resolve
// it once more. INVALID_ARGUMENT: the other form cannot say it; names what.

// As spec.fields; the label stays where it is: a line without one is bad there, and in spec.labels
// it says nothing of its task. Libffm: its data decide how many fields there are.
absl::Status ToFieldsForm(JobSpec& job);

// As spec.data alone, but for labels.
absl::Status ToColumnsForm(JobSpec& job);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_FIELD_FORM_H_
