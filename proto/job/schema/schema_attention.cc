#include "proto/job/schema/schema_attention.h"

#include <cstddef>

#include "absl/strings/strip.h"

namespace strata {

std::optional<std::string> SequenceOf(absl::string_view tensor) {
  // attention_NAME_LAYER_weight, or _bias; NAME may hold anything.
  if (!absl::ConsumePrefix(&tensor, "attention_")) return std::nullopt;
  if (!absl::ConsumeSuffix(&tensor, "_weight") && !absl::ConsumeSuffix(&tensor, "_bias")) {
    return std::nullopt;
  }
  const size_t end = tensor.rfind('_');
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(tensor.substr(0, end));
}

Items::Items(const Schema& schema) {
  for (const SchemaField& field : schema.fields()) {
    if (field.kind() == "sequence") tables_.emplace(field.name(), field.table());
    if (field.kind() == "categorical") items_.emplace(field.table(), field.name());
  }
}

std::string Items::Of(absl::string_view tensor) const {
  const std::optional<std::string> sequence = SequenceOf(tensor);
  if (!sequence) return "";
  const auto table = tables_.find(*sequence);
  if (table == tables_.end()) return "";
  const auto item = items_.find(table->second);
  return item == items_.end() ? "" : std::string(item->second);
}

}  // namespace strata
