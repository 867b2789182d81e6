#include "proto/job/schema/schema_depths.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/job/checks/shown.h"

namespace strata {
namespace {

constexpr size_t kMostNames = 20;

// Whether a layer is the first hidden one of a tower: "tower_12_0".
bool IsFirstOfTower(absl::string_view layer) {
  if (!absl::ConsumePrefix(&layer, "tower_") || !absl::ConsumeSuffix(&layer, "_0")) return false;
  return std::all_of(layer.begin(), layer.end(), absl::ascii_isdigit);
}

// How many hidden layers lie below the tensors of a schema that are named without a number.
class Depths {
 public:
  // `schema` outlives this.
  explicit Depths(const Schema& schema) {
    for (const SchemaTensor& tensor : schema.tensors()) names_.insert(tensor.name());
  }
  // Nothing: the tensor is of no output layer, nor of a tower's first layer, which weighs that of
  // the layers that tasks share.
  std::optional<int> Below(absl::string_view tensor) const {
    if (!absl::ConsumeSuffix(&tensor, "_weight") && !absl::ConsumeSuffix(&tensor, "_bias")) {
      return std::nullopt;
    }
    if (tensor == "output") return Count("layer");
    if (IsFirstOfTower(tensor)) return Shared();
    if (!absl::ConsumeSuffix(&tensor, "_output")) return std::nullopt;
    const int own = Count(tensor);
    return own == 0 && absl::StartsWith(tensor, "tower_") ? Shared() : own;
  }

 private:
  int Shared() const { return Count("layer") + Count("expert_0"); }
  int Count(absl::string_view perceptron) const {
    int layers = 0;
    while (names_.contains(absl::StrCat(perceptron, "_", layers, "_weight"))) ++layers;
    return layers;
  }

  std::set<std::string> names_;
};

}  // namespace

std::string DepthWarning(const SchemaMapping& mapping, const Schema& saved, const Schema& now) {
  const Depths saved_depths(saved), depths(now);
  std::vector<std::string> tensors, renames;
  for (const auto& [from, to] : mapping.tensors) {
    const std::string &was_name = saved.tensors(from).name(), &name = now.tensors(to).name();
    const std::optional<int> was = saved_depths.Below(was_name), is = depths.Below(name);
    if (!was || !is || *was == *is) continue;
    tensors.push_back(absl::StrCat(name, " (above ", *is, ", was above ", *was, ")"));
    renames.push_back(absl::StrCat(was_name, ": \"\""));
  }
  if (tensors.empty()) return "";
  if (tensors.size() > kMostNames) {
    const size_t more = tensors.size() - kMostNames;
    tensors.resize(kMostNames);
    renames.resize(kMostNames);
    for (auto* list : {&tensors, &renames}) list->push_back(absl::StrCat("and ", more, " more"));
  }
  return ShownText(absl::StrCat("loaded above another number of hidden layers: tensor ",
                                absl::StrJoin(tensors, ", tensor "),
                                "; spec.model.initFrom.rename: {", absl::StrJoin(renames, ", "),
                                "}, with newTensors and droppedTensors allowed, begins them anew"));
}

}  // namespace strata
