// Checks that the resolvers of a job file's parts share. Each returns INVALID_ARGUMENT that names
// the field by its path, the value, the limit, and what to do.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_CHECKS_SPEC_CHECKS_H_
#define STRATA_PROTO_JOB_CHECKS_SPEC_CHECKS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace strata::spec {

using Choices = std::initializer_list<absl::string_view>;

// One line, whatever a user's text in it holds.
absl::Status Bad(absl::string_view field, absl::string_view what);

// `value` must be one of `choices`.
absl::Status CheckChoice(absl::string_view field, absl::string_view value, Choices choices);

absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t low, uint64_t high);

// `value` must be finite, above `low` (or equal, when kAllowed) and below `high`.
enum class Low { kAllowed, kNotAllowed };
absl::Status CheckReal(absl::string_view field, float value, float low, Low low_allowed,
                       float high);

// A path must fit into what the kernel takes, and have no control character: a zero ends it where
// the kernel reads it, and a new line one of a log. Empty: none is given.
absl::Status CheckPath(absl::string_view field, absl::string_view path);

template <typename Strings>
absl::Status CheckPaths(absl::string_view field, const Strings& paths) {
  for (int i = 0; i < paths.size(); ++i) {
    absl::Status s = CheckPath(absl::StrCat(field, "[", i, "]"), paths[i]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

template <typename Strings>
absl::Status CheckNoneEmpty(absl::string_view field, const Strings& values) {
  for (int i = 0; i < values.size(); ++i) {
    if (values[i].empty()) return Bad(absl::StrCat(field, "[", i, "]"), "is empty; name a file");
  }
  return absl::OkStatus();
}

}  // namespace strata::spec

#define STRATA_RETURN_IF_BAD(expression)               \
  do {                                                 \
    absl::Status status_of_check = (expression);       \
    if (!status_of_check.ok()) return status_of_check; \
  } while (false)

#endif  // STRATA_PROTO_JOB_CHECKS_SPEC_CHECKS_H_
