// What a message holds that this program's protobufs do not name.
#ifndef STRATA_PROTO_JOB_CHECKS_UNKNOWN_FIELDS_H_
#define STRATA_PROTO_JOB_CHECKS_UNKNOWN_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace strata {

// The first field of `message`, or of one in it, that a newer program set and this one does not
// know, by its number, as nobody here knows its name: "field 9 of spec.labels[0]", or "field 9".
// Empty: there is none.
std::string UnknownField(const google::protobuf::Message& message);

// FAILED_PRECONDITION: `message` has such a field, so that `reader`, which this program is ("the
// scheduler"), is older than `writer` ("this client"); the text names both and what can be done.
absl::Status CheckKnown(const google::protobuf::Message& message, absl::string_view reader,
                        absl::string_view writer);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_CHECKS_UNKNOWN_FIELDS_H_
