// What fields are called, for people.
// Tested by tests/worker/data/formats/formats_test.cc
#ifndef STRATA_WORKER_DATA_READING_FIELD_NAMES_H_
#define STRATA_WORKER_DATA_READING_FIELD_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata {

// By number, of a resolved job: spec.fields' names; without those criteo's C1..C26 and, as buckets,
// I1..I13, and csv's columns. Of libffm, whose data say how many fields there are, the first
// `libffm_fields`: by spec.fields, else by their numbers. Empty: there are none (libfm, libsvm).
std::vector<std::string> FieldNames(const JobSpec& spec, uint32_t libffm_fields = 0);

// The number of a field of that name, among those that FieldNames has; none: there is none.
std::optional<uint32_t> FieldNumber(const JobSpec& spec, uint32_t libffm_fields,
                                    const std::string& name);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_FIELD_NAMES_H_
