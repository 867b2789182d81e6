#include "proto/job/schema/schema_names.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace strata {
namespace {

// "tower_0_1" as "tower_0_output", where the perceptron has `hidden` layers before its output, one
// here. "": `layer` is no such output.
std::string Output(absl::string_view layer, absl::string_view perceptron, int hidden) {
  if (!absl::StartsWith(layer, perceptron)) return "";
  if (!absl::ConsumeSuffix(&layer, absl::StrCat("_", hidden))) return "";
  return absl::StrCat(layer, "_output");
}

// What a layer is called today; "": as it was.
std::string LayerNow(const ModelSpec& model, absl::string_view layer) {
  const std::string& type = model.type();
  if (type == "shared_bottom" || type == "mmoe") {
    return Output(layer, "tower_", model.tower_hidden_size());
  }
  if (type == "din") return Output(layer, "attention_", model.attention_hidden_size());
  if (type == "dlrm") {
    const std::string bottom = Output(layer, "bottom_", model.bottom_hidden_size());
    if (!bottom.empty()) return bottom;
  }
  if (type != "wide_deep" && type != "deepfm" && type != "dlrm") return "";
  return layer == absl::StrCat("layer_", model.hidden_size()) ? "output" : "";
}

std::string TensorNow(const ModelSpec& model, absl::string_view tensor) {
  absl::string_view layer = tensor;
  if (model.type() == "dcn_v2") {
    const bool low_rank = model.cross_rank() > 0 && absl::StartsWith(layer, "cross_");
    return low_rank && absl::ConsumeSuffix(&layer, "_weight") ? absl::StrCat(layer, "_u") : "";
  }
  const bool bias = absl::ConsumeSuffix(&layer, "_bias");
  if (!bias && !absl::ConsumeSuffix(&layer, "_weight")) return "";
  const std::string now = LayerNow(model, layer);
  return now.empty() ? "" : absl::StrCat(now, bias ? "_bias" : "_weight");
}

}  // namespace

void RenameTensors(const ModelSpec& model, Schema& saved) {
  for (SchemaTensor& tensor : *saved.mutable_tensors()) {
    std::string now = TensorNow(model, tensor.name());
    if (!now.empty()) tensor.set_name(std::move(now));
  }
}

}  // namespace strata
