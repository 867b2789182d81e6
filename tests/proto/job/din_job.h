// A din over csv whose tables and fields a test names.
#ifndef STRATA_TESTS_PROTO_JOB_DIN_JOB_H_
#define STRATA_TESTS_PROTO_JOB_DIN_JOB_H_

#include <cstdint>
#include <initializer_list>

#include "proto/strata/job.pb.h"

namespace strata {

struct DinField {
  const char *name, *kind, *table;
};

// Sequences have `max_length` values at most. Defaults are not resolved.
TrainingJob DinJob(std::initializer_list<const char*> tables,
                   std::initializer_list<DinField> fields, uint32_t max_length);

}  // namespace strata

#endif  // STRATA_TESTS_PROTO_JOB_DIN_JOB_H_
