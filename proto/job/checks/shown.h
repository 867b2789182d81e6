// How messages show numbers, and texts that users gave.
#ifndef STRATA_PROTO_JOB_CHECKS_SHOWN_H_
#define STRATA_PROTO_JOB_CHECKS_SHOWN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace strata {

// In six digits where they tell it, else in as many as tell it from its neighbours:
// ShownNumber(0.1) is "0.1", ShownNumber(1700000001.0) is "1700000001".
std::string ShownNumber(double number);
std::string ShownNumber(float number);

// `text` without control characters, so that a message stays one line: "\n" is a backslash and n.
std::string ShownText(absl::string_view text);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_CHECKS_SHOWN_H_
