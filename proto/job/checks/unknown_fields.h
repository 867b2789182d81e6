// What a message holds that this program's protobufs do not name.
#ifndef STRATA_PROTO_JOB_CHECKS_UNKNOWN_FIELDS_H_
#define STRATA_PROTO_JOB_CHECKS_UNKNOWN_FIELDS_H_

#include <string>

#include "google/protobuf/message.h"

namespace strata {

// The first field of `message`, or of one in it, that a newer program set and this one does not
// know, by its number, as nobody here knows its name: "field 9 of spec.labels[0]", or "field 9".
// Empty: there is none.
std::string UnknownField(const google::protobuf::Message& message);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_CHECKS_UNKNOWN_FIELDS_H_
