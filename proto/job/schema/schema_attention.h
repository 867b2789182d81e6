// What din's attention is of: a sequence, whose values it weighs by an item
// (proto/job/fields/sequences.h). Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_ATTENTION_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_ATTENTION_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// The name of the sequence whose attention a tensor is of; nothing: it is of none.
std::optional<std::string> SequenceOf(absl::string_view tensor);

// The items of the sequences of a schema.
class Items {
 public:
  // `schema` outlives this.
  explicit Items(const Schema& schema);
  // By which field the attention that `tensor` is of weighs its sequence; "": the tensor is of no
  // attention, or the schema does not say.
  std::string Of(absl::string_view tensor) const;

 private:
  std::map<absl::string_view, absl::string_view> tables_;  // by sequence
  std::map<absl::string_view, absl::string_view> items_;   // by table
};

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_ATTENTION_H_
