// The two forms in which a job says what its data's columns are: spec.fields and spec.labels, and
// spec.data alone.
#ifndef STRATA_PROTO_JOB_FIELDS_FIELD_FORM_H_
#define STRATA_PROTO_JOB_FIELDS_FIELD_FORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata {

// What the other form means else than the one before, in a line each without its end; none: it
// means the same.
using FormNotes = std::vector<std::string>;

// Both want the defaults of `job` resolved, and leave a job that has the same model of the same
// good lines; resolve it once more. INVALID_ARGUMENT: the other form cannot say it; the message
// names the field of the job, and `job` stays as it was.

// As spec.fields and spec.labels. `libffm_fields`: how many fields the data have, which libffm
// alone needs; 0: not known.
absl::StatusOr<FormNotes> ToFieldsForm(JobSpec& job, uint32_t libffm_fields = 0);

// As spec.data alone. One table of other formats than csv stays in spec.tables where it says more
// than the rest of the job.
absl::StatusOr<FormNotes> ToColumnsForm(JobSpec& job);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_FIELD_FORM_H_
