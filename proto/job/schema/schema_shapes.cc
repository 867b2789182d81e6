#include "proto/job/schema/schema_shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// `Part` is a segment or a tensor. Optimizers that keep nothing beside a weight are as one.
template <typename Part>
std::string PartChange(absl::string_view of, const Part& saved, const Part& now) {
  const auto name = [](const OptimizerConfig& o) {
    return o.type() == "add" ? "none (mode easgd)" : o.type();
  };
  const bool stateless = saved.state().empty() && now.state().empty();
  if (stateless || saved.optimizer().type() == now.optimizer().type()) return "";
  return absl::StrCat(of, "the optimizer was ", name(saved.optimizer()), ", is ",
                      name(now.optimizer()));
}

}  // namespace

std::string ShapeText(const SchemaTensor& tensor) {
  return absl::StrCat("(", absl::StrJoin(tensor.shape(), ", "), ")");
}

std::string ShapeText(const SchemaTable& table) {
  return absl::StrJoin(table.segments(), " + ", [](std::string* out, const SchemaSegment& s) {
    absl::StrAppend(out, s.name(), "(", s.dim(), ")");
  });
}

bool SameShape(const SchemaTensor& a, const SchemaTensor& b) {
  return std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
}

bool SameShape(const SchemaTable& a, const SchemaTable& b) {
  return std::equal(a.segments().begin(), a.segments().end(), b.segments().begin(),
                    b.segments().end(), [](const SchemaSegment& x, const SchemaSegment& y) {
                      return x.name() == y.name() && x.dim() == y.dim();
                    });
}

std::string OptimizerChange(const SchemaTensor& saved, const SchemaTensor& now) {
  return PartChange("", saved, now);
}

std::string OptimizerChange(const SchemaTable& saved, const SchemaTable& now) {
  std::vector<std::string> changes;
  for (int i = 0; i < now.segments_size(); ++i) {
    std::string change =
        PartChange(absl::StrCat(now.segments(i).name(), ": "), saved.segments(i), now.segments(i));
    if (!change.empty()) changes.push_back(std::move(change));
  }
  return absl::StrJoin(changes, "; ");
}

}  // namespace strata
