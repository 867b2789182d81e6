#include "proto/wire/header_codec.h"

#include "proto/core/mutation.h"

namespace strata::wire {

bool Full(FieldReader& r, size_t size, size_t limit) {
  if (size < limit || STRATA_MUTATION("message.any_count")) return false;
  r.FailWith(absl::StatusCode::kResourceExhausted,
             absl::StrCat("more than ", limit, " elements, the most that one message may hold"));
  return true;
}

}  // namespace strata::wire
