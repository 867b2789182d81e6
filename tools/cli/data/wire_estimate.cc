#include "tools/cli/data/wire_estimate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/strings/str_cat.h"
#include "proto/core/table_spec.h"
#include "proto/wire/value_codec.h"
#include "worker/train/pull_codecs.h"

namespace strata {
namespace {

constexpr uint64_t kKeyBytes = 8;

struct HashedKeys {
  const TableSpec* table;
  uint64_t pulled;  // by a worker at a time
  uint64_t pushed;
  uint64_t logged;  // by all of them
};

std::vector<HashedKeys> KeysOf(const DataMeasure& data, const ModelTables& tables, bool step) {
  std::vector<HashedKeys> all;
  for (const TableSpec& table : tables.tables) {
    if (table.kind == TableKind::kDense) continue;
    HashedKeys keys{&table, step ? data.keys_per_push : data.keys_per_batch, 0, 0};
    keys.logged = step ? data.keys_per_step : data.keys_per_batch;
    if (all.size() < data.of_table.size()) {
      const DataMeasure::OfTable& own = data.of_table[all.size()];
      keys.pulled = step ? own.per_push : own.per_batch;
      keys.logged = step ? own.per_step : own.per_batch;
    }
    keys.pushed = keys.pulled;
    all.push_back(keys);
  }
  return all;
}

uint64_t Sum(const std::vector<HashedKeys>& all, const std::function<uint64_t(HashedKeys)>& of) {
  uint64_t bytes = 0;
  for (const HashedKeys& keys : all) bytes += of(keys);
  return bytes;
}

uint64_t DenseBytes(const ModelTables& tables) {
  uint64_t rows = 0;
  for (const TensorSpec& tensor : tables.tables[ModelTables::kDenseTable].tensors) {
    rows += tensor.Rows(ModelTables::kDenseRowDim);
  }
  return rows * ModelTables::kDenseRowDim * sizeof(float);
}

}  // namespace

WireEstimate EstimateWire(const JobSpec& spec, const DataMeasure& data, const ModelTables& tables) {
  WireEstimate wire;
  wire.of_step = spec.training().mode() == "bsp";
  const wire::PullCodecs codecs = PullCodecsOf(spec);
  const uint64_t workers = wire.of_step ? std::max(1u, spec.replicas().workers()) : 1;
  const uint64_t copies = std::max(1u, spec.storage().replicas());
  const std::vector<HashedKeys> keys = KeysOf(data, tables, wire.of_step);
  const uint64_t dense = DenseBytes(tables);
  const uint64_t pulled = Sum(keys, [&](const HashedKeys& k) {
    return k.pulled * (kKeyBytes + wire::ValueBytes(codecs.Of(k.table->id), k.table->dim()));
  });
  const uint64_t pushed =
      Sum(keys, [](const HashedKeys& k) { return k.pushed * k.table->push_dim() * sizeof(float); });
  const uint64_t logged = Sum(keys, [](const HashedKeys& k) {
    return k.logged * (kKeyBytes + k.table->push_dim() * sizeof(float));
  });
  const char* const whose =
      wire.of_step ? "workers x (distinct keys of a worker" : "(keys of a batch";
  wire.parts.push_back({"pulls", workers * (pulled + dense),
                        absl::StrCat(whose, " x (8 + bytes of a row) + dense part)")});
  wire.parts.push_back(
      {"pushes", workers * (pushed + dense), absl::StrCat(whose, " x 4 dim + dense part)")});
  if (copies > 1) {
    wire.parts.push_back(
        {"log entries for copies", (copies - 1) * (logged + dense),
         absl::StrCat("(copies - 1) x (keys of a ", wire.of_step ? "step" : "batch",
                      " x (8 + 4 dim) + dense part)")});
  }
  return wire;
}

nlohmann::ordered_json WireJson(const WireEstimate& wire) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const MemoryPart& part : wire.parts) {
    parts.push_back({{"name", part.name}, {"bytes", part.bytes}, {"formula", part.formula}});
  }
  return {{"of", wire.of_step ? "step" : "batch"},
          {"bytes", TotalBytes(wire.parts)},
          {"parts", std::move(parts)}};
}

}  // namespace strata
