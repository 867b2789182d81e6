// What the parts of a checkpoint are called in a job that renames some.
// Tested by tests/proto/job/schema_test.cc
#ifndef STRATA_PROTO_JOB_SCHEMA_RENAMING_H_
#define STRATA_PROTO_JOB_SCHEMA_RENAMING_H_

#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// What the checkpoint's parts of one kind are called in the job. A rename counts where the job has
// a part of that kind with the new name; one to "" leaves behind what has the old name.
class Renaming {
 public:
  // `now`: the job's parts; both outlive this.
  template <typename List>
  Renaming(const List& now, const std::map<std::string, std::string>& rename) : rename_(rename) {
    for (const auto& part : now) has_.insert(part.name());
  }
  // "": it is left behind.
  const std::string& Now(const std::string& saved) const;
  bool Has(const std::string& now) const { return has_.contains(now); }

 private:
  std::set<absl::string_view> has_;
  const std::map<std::string, std::string>& rename_;
};

// `rename` for tensors. A sequence's new name is that of its attention's tensors too, but for those
// that `rename` names; where the job has no such tensor, or the sequence is left behind, so are
// they.
std::map<std::string, std::string> RenamesOfTensors(
    const Schema& saved, const Schema& now, const std::map<std::string, std::string>& rename);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_RENAMING_H_
