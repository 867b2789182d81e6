// Vectors of fields of several widths, and their rows' gradients, against ops/nn, bit for bit.
#include "ops/cuda/nn/field_vectors.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/cuda/rows/row_runs.h"
#include "ops/nn/field_vectors.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kExamples = 300, kUnique = 40, kMost = 6;

// Fields 0, of table 0, and 1 and 2, of a table that is used by a sequence, too, the last pooled by
// max; the sequence is field 3; no key of the fourth table occurs; features of field 4 stand
// nowhere. The second table is of no key at all, as the dense one.
struct Problem {
  explicit Problem(const std::vector<uint32_t>& widths, bool named) : dims(widths), named(named) {
    Random random(widths[0]);
    columns = {{0, 0}, {2, dims[0]}, {2, dims[0] + dims[2], FieldColumns::kNoSequence, 1}, {}};
    cleared = dims[0] + 2 * dims[2];
    // As between vectors and sequences numbers stand, and where those begin is no whole quad.
    columns[3] = {2, cleared + 3, 0, 0};
    width = cleared + 3 + kMost * dims[2];
    stride = (width + 4) / 4 * 4;
    for (uint32_t i = 0; i < kExamples; ++i) AddExample(random);
    rows = random.Floats(kUnique * (dims[0] + dims[2] + dims[3]));
    for (uint32_t i = 0; i < 9; ++i) rows[i * 5 % rows.size()] = -0.0f;
    rows[kUnique * dims[0] + 7] = std::numeric_limits<float>::quiet_NaN();
    gradient = random.Floats(kExamples * stride);
    for (uint32_t key = 0; key < 3 * kUnique; ++key) {
      for (uint32_t f = 0; f < row.size(); ++f) {
        if (row[f] == key) occurrences.push_back(f);
      }
      const auto end = static_cast<uint32_t>(occurrences.size());
      const uint32_t n = end - first.back();
      const uint32_t more = n > kCoalesceChunk ? (n + kCoalesceChunk - 1) / kCoalesceChunk : 0;
      chunk_first.push_back(chunk_first.back() + more);
      first.push_back(end);
    }
    runs.resize(dims.size() + 1);
    FillRowRuns(dims, keys, chunk_first.data(), runs.data());
  }

  void AddExample(Random& random) {
    const auto i = static_cast<uint32_t>(offsets.size() - 1);
    const auto begin = static_cast<uint32_t>(row.size());
    const auto add = [&](uint32_t field, uint32_t n) {
      for (uint32_t p = 0; p < n; ++p) {
        const uint32_t table = field == 0 || field > 3 ? 0 : 1;  // of those with keys
        // One key in two is the same: it has chunks, and levels of them.
        row.push_back(table * kUnique + random.Below(2) * random.Below(kUnique));
        fields.push_back(field);
        values.push_back(field == 2 ? 1.0f : random.Float());
        example.push_back(i);
      }
    };
    if (!named) {
      add(0, random.Below(2));
      if (row.size() > begin) add(1, random.Below(2));
      sequence_first.push_back(static_cast<uint32_t>(row.size()));
      offsets.push_back(static_cast<uint32_t>(row.size()));
      return;
    }
    for (uint32_t field = 0; field < 3; ++field) add(field, random.Below(4));
    sequence_first.push_back(static_cast<uint32_t>(row.size()));
    add(3, random.Below(kMost + 1));
    add(4, random.Below(2));
    offsets.push_back(static_cast<uint32_t>(row.size()));
  }

  std::vector<FeaturePlace> Places() const {
    std::vector<FeaturePlace> places;
    for (uint32_t f = 0; f < row.size(); ++f) {
      const uint32_t field = fields[f];
      FeaturePlace& place = places.emplace_back();
      if (field > 3) continue;
      const uint32_t table = columns[field].table, dim = dims[table];
      place.row = table == 0 ? row[f] * dim : kUnique * dims[0] + (row[f] - kUnique) * dim;
      place.dim = static_cast<uint16_t>(dim);
      place.column = columns[field].column;
      if (field == 3) {
        place.column += (f - sequence_first[example[f]]) * dim;
        continue;
      }
      place.max = field == 2;
      place.first = f == offsets[example[f]] || fields[f - 1] != field;
    }
    return places;
  }

  std::vector<uint32_t> dims, keys = {kUnique, 0, kUnique, kUnique};  // by table
  bool named;
  std::vector<FieldColumns> columns;
  uint32_t cleared = 0, width = 0, stride = 0;
  std::vector<uint32_t> offsets{0}, row, fields, example, sequence_first;
  std::vector<uint32_t> first{0}, chunk_first{0}, occurrences;
  std::vector<float> values, rows, gradient;
  std::vector<RowRun> runs;
};

// What comes of it on the host.
struct Right {
  explicit Right(const Problem& p)
      : places(p.Places()),
        matrix(kExamples * p.stride, 5.0f),
        from(matrix.size(), 77),
        sums(p.rows.size(), 5.0f) {
    const VectorExamples x = {p.offsets.data(), places.data(), p.values.data(), p.rows.data()};
    ops::GatherVectors(x, 0, kExamples, p.cleared, {matrix.data(), p.stride, from.data()});
    std::vector<float> gradient = p.gradient;
    const VectorMatrix by = {gradient.data(), p.stride, from.data()};
    size_t key = 0, at = 0;
    for (size_t t = 0; t < p.dims.size(); ++t) {
      ops::VectorGradients(x, by, p.example.data(),
                           {p.first.data() + key, p.occurrences.data(), 0, p.keys[t]}, p.dims[t],
                           sums.data() + at);
      key += p.keys[t];
      at += size_t{p.keys[t]} * p.dims[t];
    }
  }
  std::vector<FeaturePlace> places;
  std::vector<float> matrix;
  std::vector<uint32_t> from;
  std::vector<float> sums;
};

bool Same(const FeaturePlace& a, const FeaturePlace& b) {
  return a.row == b.row && a.column == b.column && a.dim == b.dim && a.first == b.first &&
         a.max == b.max;
}

void CheckProblem(TestApi& test, const Problem& p) {
  const Right right(p);
  const ops::gpu::StreamHandle stream = test.stream.get();
  DeviceVector<uint32_t> offsets(test, p.offsets), row(test, p.row), fields(test, p.fields);
  DeviceVector<uint32_t> sequence_first(test, p.sequence_first), example(test, p.row.size(), 9);
  DeviceVector<FieldColumns> columns(test, p.columns);
  DeviceVector<RowRun> runs(test, p.runs);
  DeviceVector<FeaturePlace> places(test, p.row.size());
  FeatureList list;
  list.examples = kExamples;
  list.offsets = offsets.get();
  list.key = row.get();
  list.fields = p.named ? fields.get() : nullptr;
  list.columns = columns.get();
  list.known_fields = 4;
  list.sequence_first = sequence_first.get();
  list.sequences = 1;
  list.runs = {runs.get(), static_cast<uint32_t>(p.dims.size())};
  REQUIRE(PlaceFeatures(*test.api, list, places.get(), example.get(), stream).ok());
  CHECK(example.Get() == p.example);
  const std::vector<FeaturePlace> placed = places.Get();
  size_t elsewhere = 0;
  for (size_t f = 0; f < placed.size(); ++f) elsewhere += !Same(placed[f], right.places[f]);
  CHECK(elsewhere == 0);

  DeviceVector<float> values(test, p.values), rows(test, p.rows), gradient(test, p.gradient);
  DeviceVector<float> matrix(test, right.matrix.size(), 5.0f), sums(test, right.sums.size(), 5.0f);
  DeviceVector<uint32_t> from(test, right.from.size(), 77);
  const VectorExamples x = {offsets.get(), places.get(), values.get(), rows.get()};
  for (uint32_t* const to : {static_cast<uint32_t*>(nullptr), from.get()}) {
    matrix.Set(std::vector<float>(right.matrix.size(), 5.0f));
    REQUIRE(
        GatherVectors(*test.api, x, kExamples, 9, p.cleared, {matrix.get(), p.stride, to}, stream)
            .ok());
    CHECK(Differences(matrix.Get(), right.matrix) == 0);
  }
  CHECK(from.Get() == right.from);

  auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 16 << 20, "test");
  REQUIRE(arena.ok());
  const auto features = static_cast<uint32_t>(p.row.size());
  auto coalescer = Coalescer::Create(test.api.get(), arena->get(), {features, 9, 4, false}, stream);
  REQUIRE(coalescer.ok());
  DeviceVector<uint32_t> first(test, p.first), chunk_first(test, p.chunk_first);
  DeviceVector<uint32_t> occurrences(test, p.occurrences);
  DeviceVector<uint32_t> counts(test, {3 * kUnique, p.chunk_first.back()});
  // Memory is for more features than there are.
  const GroupedKeys grouped = {nullptr,        first.get(),       occurrences.get(), counts.get(),
                               features + 100, chunk_first.get(), counts.get() + 1};
  REQUIRE(VectorGradients(*test.api, **coalescer, grouped, x,
                          {gradient.get(), p.stride, from.get()}, example.get(), list.runs,
                          sums.get(), stream)
              .ok());
  CHECK(Differences(sums.Get(), right.sums) == 0);
}

TEST_CASE("vectors of several widths are the host's, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (const std::vector<uint32_t>& dims :
         {std::vector<uint32_t>{4, 256, 8, 2}, std::vector<uint32_t>{3, 256, 9, 5},
          std::vector<uint32_t>{1, 256, 4, 1}}) {
      for (const bool named : {true, false}) {
        INFO(test.name << ", dims " << dims[0] << " and " << dims[2] << ", named " << named);
        CheckProblem(test, Problem(dims, named));
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
