// What the parts of a checkpoint are called in a job. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_RENAMING_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_RENAMING_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  // Whether a rename says what `saved` is called.
  bool Says(const std::string& saved) const;

 private:
  std::set<absl::string_view> has_;
  const std::map<std::string, std::string>& rename_;
};

// Whether neither has more than one label, which is the same one then, whatever it is called,
// unless a rename leaves it behind. `labels`: what those of `saved` are called.
bool HaveOneLabel(const Schema& saved, const Schema& now, const Renaming& labels);

// The same of dense tensors. Towers and gates, which have the number of a label in their names,
// follow it to the number that it has now, and those of an attention the name of its sequence,
// unless a rename says otherwise: those of a label or sequence that the job does not have are left
// behind.
class TensorRenaming {
 public:
  // `saved`, `now` and `rename` outlive this.
  TensorRenaming(const Schema& saved, const Schema& now,
                 const std::map<std::string, std::string>& rename);
  std::string Now(const std::string& saved) const;
  bool Has(const std::string& now) const { return tensors_.Has(now); }

 private:
  const Renaming tensors_, fields_;
  // By the number in the checkpoint, the number in the job, or nothing; empty: all stay.
  std::vector<std::optional<int>> labels_;
};

// The same of columns of the data, which fields and labels read. `rename` with "" says nothing.
class ColumnRenaming {
 public:
  // `now` and `rename` outlive this.
  ColumnRenaming(const Schema& now, const std::map<std::string, std::string>& rename);
  const std::string& Now(const std::string& saved) const;
  // Whether column `saved` of the checkpoint's data may be `now` of the job's.
  bool Same(const std::string& saved, const std::string& now) const;
  bool Has(const std::string& now) const { return has_.contains(now); }

 private:
  std::set<absl::string_view> has_;
  const std::map<std::string, std::string>& rename_;
};

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_RENAMING_H_
