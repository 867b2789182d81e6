// The text of a list in the authority's folder: a heading, lines, and a checksum over all of it, so
// that a list that lost its end is an error and never a shorter list. Pure.
// Tested by tests/proto/runtime/credentials/revocations_test.cc
// Tested by tests/proto/runtime/credentials/issued_certificates_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CHECKED_LINES_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CHECKED_LINES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace strata {

// Every line of `text` ends with '\n'; the first one is the heading.
std::string WithChecksum(absl::string_view text);
// The lines, without their ends and without the checksum, the heading first. DATA_LOSS, with why:
// it is not a whole text of that kind.
absl::StatusOr<std::vector<absl::string_view>> CheckedLines(absl::string_view text);

// As TimeText writes it; false: it is none.
bool ParseTimeText(absl::string_view text, absl::Time& time);

// 32 hexadecimal digits or more, lower case, as the serial numbers of CertificateFacts are.
bool IsSerial(absl::string_view text);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CHECKED_LINES_H_
