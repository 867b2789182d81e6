#include "proto/job/schema_renaming.h"

#include <cstddef>
#include <optional>

#include "proto/job/schema_meaning.h"

namespace strata {

const std::string& Renaming::Now(const std::string& saved) const {
  const auto renamed = rename_.find(saved);
  if (renamed == rename_.end()) return saved;
  return renamed->second.empty() || Has(renamed->second) ? renamed->second : saved;
}

std::map<std::string, std::string> RenamesOfTensors(
    const Schema& saved, const Schema& now, const std::map<std::string, std::string>& rename) {
  constexpr size_t kPrefix = sizeof("attention_") - 1;
  const Renaming fields(now.fields(), rename), tensors(now.tensors(), rename);
  std::map<std::string, std::string> out = rename;
  for (const SchemaTensor& tensor : saved.tensors()) {
    const std::optional<std::string> sequence = SequenceOf(tensor.name());
    if (!sequence || fields.Now(*sequence) == *sequence) continue;
    std::string called = tensor.name();
    called.replace(kPrefix, sequence->size(), fields.Now(*sequence));
    out.emplace(tensor.name(), tensors.Has(called) ? called : "");
  }
  return out;
}

}  // namespace strata
