// Whether equal values of two fields of one table have one row.
#ifndef STRATA_PROTO_JOB_FIELDS_SHARED_ROWS_H_
#define STRATA_PROTO_JOB_FIELDS_SHARED_ROWS_H_

#include <string>

#include "proto/job/fields/field_plan.h"
#include "proto/strata/job.pb.h"

namespace strata {

// In what two fields of one table differ, so that equal values have rows of their own: "hashSeed",
// "vocabulary"; "": they share them.
std::string OtherRows(const FieldPlan& a, const FieldPlan& b);

// Fields of one of spec.tables that share no rows, as only one has a vocabulary or a hashSeed
// differs: a warning for people, or empty. Where both have vocabularies, of other files, they are
// to have no rows in common (CheckVocabularies in field_spec.cc).
std::string NoSharedRows(const JobSpec& spec);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_SHARED_ROWS_H_
