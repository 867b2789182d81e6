#include "tests/server/job/label_account.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "storage/row/layout.h"

namespace strata::server {

std::vector<TableSpec> Model::Tables() const {
  OptimizerSpec o;
  o.type = optimizer;
  o.initial_accumulator = 0.5f;
  const InitializerSpec uniform{InitializerType::kUniform, 0.5f};
  const auto labels_here = static_cast<uint32_t>(labels.size());
  TableSpec features, dense;
  features.id = TableId(0);
  features.name = "features";
  features.segments = {{"embedding", kEmbedding, uniform, o}, {"weight", labels_here, uniform, o}};
  features.life_cycle.removal.scored = scored;
  dense.id = TableId(1);
  dense.name = "dense";
  dense.kind = TableKind::kDense;
  dense.segments = {{"dense", kDim, {}, o}};
  dense.tensors = {{"output_weight", uint64_t{kInputs} * labels_here, Position(first[0]), uniform},
                   {"output_bias", labels_here, Position(first[1]), {}},
                   {"hidden", 6, Position(first[2]), uniform}};
  std::sort(dense.tensors.begin(), dense.tensors.end(),
            [](const TensorSpec& a, const TensorSpec& b) { return a.first < b.first; });
  return {features, dense};
}

bool Has(const Labels& labels, const std::string& label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

void SetMeta(std::vector<uint8_t>& row, storage::RowMeta meta) {
  std::memcpy(row.data() + row.size() - sizeof meta, &meta, sizeof meta);
}

namespace {

class Account {
 public:
  Account(const Model& model, const Labels& known, Trained& trained, bool reset)
      : model_(model), known_(known), trained_(trained), reset_(reset), tables_(model.Tables()) {}

  Rows Of(const std::vector<uint64_t>& keys) {
    for (const uint64_t key : keys) AddKey(Key(key));
    AddTensor(model_.first[0], kInputs, "output_weight");
    AddTensor(model_.first[1], 1, "output_bias");
    for (uint32_t e = 0; e < 6; ++e) {
      AddElement(model_.first[2], e, absl::StrCat("hidden ", e));
    }
    return std::move(rows_);
  }

 private:
  // A weight and its state, of a segment of a row that is there.
  void Set(std::vector<uint8_t>& row, const storage::SegmentLayout& segment, uint32_t place,
           const std::string& name) {
    SetFloat(row, segment.weight_offset + place, trained_(name));
    if (reset_) return;
    if (model_.optimizer == OptimizerType::kRowwiseAdagrad) {
      return SetFloat(row, segment.state_offset, 77.0f);
    }
    for (uint32_t a = 0; a < segment.state_floats / segment.dim; ++a) {
      SetFloat(row, segment.state_offset + a * segment.dim + place,
               trained_(absl::StrCat(name, ", state ", a)));
    }
  }

  std::vector<uint8_t>& RowOf(uint32_t table, Position position) {
    const auto [at, fresh] = rows_.try_emplace({table, position.value});
    if (fresh) {
      const storage::RowLayout layout = storage::RowLayout::For(tables_[table]);
      at->second.resize(layout.row_bytes());
      storage::InitialRow(tables_[table], layout, kSeed, tables_[table].KeyAtPosition(position),
                          at->second.data());
      SetMeta(at->second, {1, 3});
    }
    return at->second;
  }

  void AddKey(Key key) {
    const storage::RowLayout layout = storage::RowLayout::For(tables_[0]);
    std::vector<uint8_t>& row = RowOf(0, tables_[0].PositionOfKey(key));
    const std::string name = absl::StrCat("key ", key.value, " ");
    for (uint32_t i = 0; i < kEmbedding; ++i) {
      Set(row, layout.segments[0], i, absl::StrCat(name, "embedding ", i));
    }
    for (uint32_t t = 0; t < model_.labels.size(); ++t) {
      const std::string& label = model_.labels[t];
      if (Has(known_, label)) Set(row, layout.segments[1], t, absl::StrCat(name, label));
    }
    if (layout.scored && !reset_) SetFloat(row, layout.score_offset() / 4, 1.5f);
  }

  void AddElement(uint64_t first, uint64_t element, const std::string& name) {
    const storage::RowLayout layout = storage::RowLayout::For(tables_[1]);
    Set(RowOf(1, Position(first + element / kDim)), layout.segments[0],
        static_cast<uint32_t>(element % kDim), name);
  }

  void AddTensor(uint64_t first, uint32_t inputs, const std::string& name) {
    for (uint32_t i = 0; i < inputs; ++i) {
      for (uint32_t t = 0; t < model_.labels.size(); ++t) {
        const std::string& label = model_.labels[t];
        if (!Has(known_, label)) continue;
        AddElement(first, uint64_t{i} * model_.labels.size() + t,
                   absl::StrCat(name, " ", i, " ", label));
      }
    }
  }

  const Model& model_;
  const Labels& known_;
  Trained& trained_;
  const bool reset_;
  const std::vector<TableSpec> tables_;
  Rows rows_;
};

}  // namespace

void SetFloat(std::vector<uint8_t>& row, size_t place, float value) {
  std::memcpy(row.data() + place * 4, &value, 4);
}

Rows AccountOf(const Model& model, const Labels& known, Trained& trained, bool reset,
               const std::vector<uint64_t>& keys) {
  return Account(model, known, trained, reset).Of(keys);
}

}  // namespace strata::server
