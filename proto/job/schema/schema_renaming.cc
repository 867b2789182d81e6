#include "proto/job/schema/schema_renaming.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace strata {
namespace {

// The number of the label that a tensor of towers and gates is of.
std::optional<size_t> LabelOf(absl::string_view tensor) {
  size_t label = 0;
  if (!absl::ConsumePrefix(&tensor, "tower_") && !absl::ConsumePrefix(&tensor, "gate_")) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(tensor.substr(0, tensor.find('_')), &label)) return std::nullopt;
  return label;
}

// The name of the sequence whose attention a tensor is of.
std::optional<std::string> SequenceOf(absl::string_view tensor) {
  // attention_NAME_LAYER_weight, or _bias; NAME may hold anything, LAYER no underscore.
  if (!absl::ConsumePrefix(&tensor, "attention_")) return std::nullopt;
  if (!absl::ConsumeSuffix(&tensor, "_weight") && !absl::ConsumeSuffix(&tensor, "_bias")) {
    return std::nullopt;
  }
  const size_t end = tensor.rfind('_');
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(tensor.substr(0, end));
}

// "tower_1_0_weight" as that of another label.
std::string WithLabel(const std::string& tensor, int label) {
  const size_t number = tensor.find('_') + 1, rest = tensor.find('_', number);
  return absl::StrCat(tensor.substr(0, number), label, tensor.substr(rest));
}

}  // namespace

const std::string& Renaming::Now(const std::string& saved) const {
  return Says(saved) ? rename_.at(saved) : saved;
}

bool Renaming::Says(const std::string& saved) const {
  const auto renamed = rename_.find(saved);
  return renamed != rename_.end() && (renamed->second.empty() || Has(renamed->second));
}

TensorRenaming::TensorRenaming(const Schema& saved, const Schema& now,
                               const std::map<std::string, std::string>& rename)
    : tensors_(now.tensors(), rename), fields_(now.fields(), rename) {
  // What the one label is called says nothing of its tower.
  if (std::max(saved.labels_size(), now.labels_size()) < 2) return;
  std::map<absl::string_view, int> numbers;
  for (int t = 0; t < now.labels_size(); ++t) numbers.emplace(now.labels(t).name(), t);
  const Renaming labels(now.labels(), rename);
  for (const SchemaLabel& label : saved.labels()) {
    const auto number = numbers.find(labels.Now(label.name()));
    labels_.push_back(number == numbers.end() ? std::nullopt : std::optional(number->second));
  }
}

std::string TensorRenaming::Now(const std::string& saved) const {
  if (tensors_.Says(saved)) return tensors_.Now(saved);
  if (const auto sequence = SequenceOf(saved); sequence && fields_.Says(*sequence)) {
    constexpr size_t kPrefix = sizeof("attention_") - 1;
    std::string called = saved;
    called.replace(kPrefix, sequence->size(), fields_.Now(*sequence));
    return Has(called) ? called : std::string();
  }
  const std::optional<size_t> label = LabelOf(saved);
  if (!label || *label >= labels_.size()) return saved;
  const std::optional<int> now = labels_[*label];
  return now ? WithLabel(saved, *now) : std::string();
}

ColumnRenaming::ColumnRenaming(const Schema& now, const std::map<std::string, std::string>& rename)
    : rename_(rename) {
  for (const SchemaField& field : now.fields()) has_.insert(field.column());
  for (const SchemaLabel& label : now.labels()) has_.insert(label.column());
  has_.erase("");
}

const std::string& ColumnRenaming::Now(const std::string& saved) const {
  const auto renamed = rename_.find(saved);
  return renamed != rename_.end() && Has(renamed->second) ? renamed->second : saved;
}

bool ColumnRenaming::Same(const std::string& saved, const std::string& now) const {
  return saved == now || Now(saved) == now;
}

}  // namespace strata
