#include "proto/job/schema/schema_names.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace strata {
namespace {

// Whether a model has an output behind layers of that name. Deep layers of dcn_v2, and those that
// tasks share, have none.
bool HasOutput(absl::string_view model, absl::string_view perceptron) {
  if (model == "shared_bottom" || model == "mmoe") return absl::StartsWith(perceptron, "tower_");
  if (model == "din") return absl::StartsWith(perceptron, "attention_");
  if (model == "dlrm" && perceptron == "bottom") return true;
  return perceptron == "layer" && (model == "wide_deep" || model == "deepfm" || model == "dlrm");
}

// "tower_0_1_weight" is part "_weight" of layer 1 of the perceptron tower_0.
struct Layer {
  std::string perceptron;
  std::optional<uint32_t> number;  // none: it has the name `output`
  absl::string_view part;
};

std::optional<Layer> LayerOf(absl::string_view model, absl::string_view tensor) {
  Layer layer;
  for (const absl::string_view part : {"_weight", "_bias"}) {
    if (absl::ConsumeSuffix(&tensor, part)) layer.part = part;
  }
  if (layer.part.empty()) return std::nullopt;
  if (tensor == "output") return Layer{"layer", std::nullopt, layer.part};
  const size_t end = tensor.rfind('_');
  if (end == absl::string_view::npos) return std::nullopt;
  layer.perceptron = std::string(tensor.substr(0, end));
  if (!HasOutput(model, layer.perceptron)) return std::nullopt;
  const absl::string_view rest = tensor.substr(end + 1);
  uint32_t number = 0;
  if (absl::SimpleAtoi(rest, &number)) {
    layer.number = number;
  } else if (rest != "output") {
    return std::nullopt;
  }
  return layer;
}

std::string OutputOf(const Layer& layer) {
  return layer.perceptron == "layer" ? absl::StrCat("output", layer.part)
                                     : absl::StrCat(layer.perceptron, "_output", layer.part);
}

}  // namespace

void RenameTensors(Schema& saved) {
  std::map<std::string, uint32_t> last;  // numbers, by perceptron
  std::set<std::string> named;           // perceptrons whose output has its name
  std::set<std::string> low_rank;        // cross layers
  for (const SchemaTensor& tensor : saved.tensors()) {
    absl::string_view cross = tensor.name();
    if (absl::StartsWith(cross, "cross_") && absl::ConsumeSuffix(&cross, "_v")) {
      low_rank.emplace(cross);
    }
    const std::optional<Layer> layer = LayerOf(saved.model(), tensor.name());
    if (!layer) continue;
    if (!layer->number) {
      named.insert(layer->perceptron);
    } else {
      uint32_t& most = last[layer->perceptron];
      most = std::max(most, *layer->number);
    }
  }
  for (SchemaTensor& tensor : *saved.mutable_tensors()) {
    absl::string_view cross = tensor.name();
    if (absl::ConsumeSuffix(&cross, "_weight") && low_rank.contains(std::string(cross))) {
      tensor.set_name(absl::StrCat(cross, "_u"));
      continue;
    }
    const std::optional<Layer> layer = LayerOf(saved.model(), tensor.name());
    if (!layer || layer->number != last[layer->perceptron] || named.contains(layer->perceptron)) {
      continue;
    }
    tensor.set_name(OutputOf(*layer));
  }
}

}  // namespace strata
