#include "tests/worker/device/device_problem.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/host_blas.h"
#include "ops/parallel.h"

namespace strata::testing {

std::vector<Shape> DeviceShapes() {
  const std::vector<Shape> models = {
      {"lr", 7, 5, 0, {}, 90, 60, false},
      {"lr", 4, 0, 0, {}, 70, 50, true},
      {"fm", 6, 5, 8, {}, 90, 60, false},
      {"fm", 6, 0, 5, {}, 80, 40, true},
      {"wide_deep", 6, 3, 8, {20, 12}, 90, 60, false},
      {"deepfm", 6, 5, 8, {20, 12}, 90, 60, false},
      {"deepfm", 5, 0, 7, {9}, 70, 50, true},
      {"dcn_v2", 5, 3, 8, {20, 10}, 80, 60, false, Fields::kOrdinal, {}, 2, 0},
      {"dcn_v2", 5, 0, 6, {9}, 70, 50, true, Fields::kOrdinal, {}, 3, 4},
      {"dlrm", 6, 5, 8, {20, 12}, 90, 60, false, Fields::kOrdinal, {16, 10}},
      {"dlrm", 7, 0, 9, {12}, 70, 50, true}};
  std::vector<Shape> shapes;
  for (const Fields named : {Fields::kOrdinal, Fields::kSingle, Fields::kMulti}) {
    for (Shape shape : models) {
      shape.named = named;
      shapes.push_back(shape);
    }
  }
  for (const Shape& shape : TaskShapes()) shapes.push_back(shape);
  for (const Shape& shape : MaxShapes()) shapes.push_back(shape);
  for (const Shape& shape : WidthShapes()) shapes.push_back(shape);
  return shapes;
}

bool HasLayers(const Shape& shape) { return !shape.hidden.empty() || !shape.expert_hidden.empty(); }

std::vector<Shape> WidthShapes() {
  Shape mmoe = {"mmoe", 6, 3, 0, {}, 60, 30, true, Fields::kMulti};
  mmoe.dims = {4, 9, 1, 6};
  mmoe.experts = 3;
  mmoe.expert_hidden = {7};
  mmoe.labels = "bs";
  mmoe.weighted = mmoe.max = true;
  Shape one = {"mmoe", 5, 0, 0, {}, 50, 40, false, Fields::kOrdinal};
  one.dims = {8};
  one.experts = 2;
  one.expert_hidden = {10, 8};
  one.tower_hidden = {5};
  // Layers of sequences have rows that one of SplitBlas' partial sums of a column holds (256): it
  // adds them in another order than the host's products.
  Shape din = {"din", 5, 3, 0, {14}, 50, 30, true, Fields::kMulti};
  din.dims = {6, 4, 9};
  din.sequences = 2;
  din.attention_hidden = {9};
  din.labels = "bs";
  din.weighted = true;
  Shape plain = {"din", 3, 0, 0, {8}, 50, 30, false, Fields::kSingle};
  plain.dims = {8, 3};
  plain.sequences = 1;
  return {mmoe, one, din, plain};
}

std::vector<Shape> MaxShapes() {
  std::vector<Shape> shapes = {{"lr", 5, 3, 0, {}, 60, 50, true},
                               {"fm", 5, 0, 6, {}, 60, 50, true},
                               {"deepfm", 5, 3, 8, {12}, 60, 50, true},
                               {"dcn_v2", 4, 0, 5, {9}, 50, 40, false, Fields::kOrdinal, {}, 2, 3},
                               {"dlrm", 5, 3, 8, {12}, 60, 50, true, Fields::kOrdinal, {10}}};
  for (Shape& shape : shapes) {
    shape.named = Fields::kMulti;
    shape.max = true;
  }
  shapes.back().labels = "bs";
  shapes.push_back(shapes.front());
  shapes.back().named = Fields::kSingle;  // nothing to pool
  return shapes;
}

std::vector<Shape> TaskShapes() {
  std::vector<Shape> shapes;
  const auto add = [&shapes](const char* labels, bool weighted, Shape shape) {
    shape.labels = labels;
    shape.weighted = weighted;
    shapes.push_back(shape);
  };
  add("bshp", true, {"lr", 5, 3, 0, {}, 70, 50, true, Fields::kMulti});
  add("p", false, {"lr", 4, 0, 0, {}, 60, 50, false});
  add("bsh", true, {"fm", 5, 3, 6, {}, 60, 50, true, Fields::kSingle});
  add("bp", false, {"fm", 5, 0, 8, {}, 60, 40, false, Fields::kMulti});
  add("s", true, {"fm", 4, 2, 5, {}, 50, 40, false});
  add("hb", true, {"wide_deep", 5, 3, 8, {12}, 60, 50, true});
  add("bsb", true, {"deepfm", 5, 3, 8, {12, 8}, 60, 50, true, Fields::kMulti});
  add("b", true, {"deepfm", 4, 0, 5, {9}, 50, 40, false});
  add("bsp", true, {"dcn_v2", 4, 3, 5, {10}, 60, 50, true, Fields::kOrdinal, {}, 2, 0});
  add("bh", false, {"dcn_v2", 4, 0, 6, {9}, 50, 40, false, Fields::kMulti, {}, 2, 3});
  add("bhs", true, {"dlrm", 5, 3, 8, {12}, 60, 50, true, Fields::kOrdinal, {10}});
  Shape towers = {"shared_bottom", 5, 3, 8, {12, 10}, 60, 50, true};
  towers.tower_hidden = {6};
  add("bsp", true, towers);
  towers.named = Fields::kMulti;
  add("", false, towers);
  towers.tower_hidden = {};
  add("bb", false, towers);
  return shapes;
}

device::DeviceStepOptions StepOptions(ops::gpu::CudaApi* api, const Problem& p,
                                      ops::gpu::MatmulPrecision precision) {
  device::DeviceStepOptions options;
  options.api = api;
#ifdef STRATA_CUDA
  if (api->properties().uuid != "host") {
    options.blas_bytes = ops::gpu::Blas::Options::kBytes;
    options.open_blas = [](ops::gpu::Arena* arena) { return ops::gpu::Blas::Open(arena, {}); };
  }
#endif
  if (options.open_blas == nullptr) {
    options.open_blas = [api](ops::gpu::Arena*) { return ops::gpu::MakeHostBlas(api); };
  }
  options.precision = precision;
  options.batch_size = std::max(1u, p.batch.size);
  const auto features = static_cast<uint32_t>(p.batch.keys.size());
  options.first_shape = {options.batch_size, features, static_cast<uint32_t>(p.routed.keys.size()),
                         p.batch.fields.empty() ? 0 : features};
  return options;
}

namespace {

// `there`: null: rows are the problem's own. `next`: null: nothing is staged.
absl::StatusOr<StepResult> RunStep(const Problem& p, device::DeviceStep& step,
                                   const ProblemThere* there,
                                   const std::shared_ptr<const Problem>& next = nullptr) {
  StepResult r;
  r.predictions.assign(p.batch.size * p.tables.task_count(), NAN);
  r.rows.assign(p.rows.size(), NAN);
  std::vector<float*> tensor_gradients;
  std::vector<const float*> tensors;
  for (const auto& t : p.tensors) {
    r.tensors.emplace_back(t.size(), NAN);
    tensors.push_back(t.data());
  }
  for (auto& t : r.tensors) tensor_gradients.push_back(t.data());
  ModelInputs in = {&p.batch, &p.routed, p.rows.data(), tensors};
  ModelGradients out = {r.rows.data(), tensor_gradients};
  if (there != nullptr) {
    in.rows = out.rows = nullptr;
    in.there = {there->rows.get(), there->place, there->runs};
    out.rows_there = there->gradients.get();
  }
  const auto parallel = ops::MakeParallel(1);
  int staged = 0;
  if (next != nullptr) {
    in.meanwhile = [&] {
      ++staged;
      return step.Stage({&next->batch, &next->routed, next}, parallel.get());
    };
  }
  const auto loss = step.Train(in, out, r.predictions.data(), parallel.get());
  if (!loss.ok()) return loss.status();
  if (next != nullptr && p.batch.size > 0 && staged != 1) {
    return absl::InternalError(absl::StrCat("`meanwhile` was called ", staged, " times"));
  }
  r.loss = *loss;
  return r;
}

}  // namespace

absl::StatusOr<StepResult> TryRun(const Problem& p, device::DeviceStep& step) {
  return RunStep(p, step, nullptr);
}

absl::StatusOr<StepResult> TryRunStaging(const Problem& p, device::DeviceStep& step,
                                         const std::shared_ptr<const Problem>& next) {
  return RunStep(p, step, nullptr, next);
}

absl::StatusOr<StepResult> TryRun(const Problem& p, device::DeviceStep& step,
                                  const ProblemThere& there) {
  return RunStep(p, step, &there);
}

absl::StatusOr<ProblemThere> ProblemThere::Make(const Problem& p, device::RowMemory* memory,
                                                bool placed) {
  ProblemThere there;
  there.memory = memory;
  std::vector<float> all = p.rows;
  if (placed) {
    all.clear();
    there.place.resize(p.routed.keys.size());
    size_t from = 0, keys = 0;
    for (const KeyRun& run : p.routed.runs) {
      const size_t dim = p.tables.tables[run.table].dim(), first = all.size();
      all.resize(first + (2 * run.count + 1) * dim, NAN);  // which nothing may read
      for (size_t k = 0; k < run.count; ++k, from += dim) {
        const size_t place = 2 * (run.count - k) - 1;
        there.place[run.first + k] = static_cast<uint32_t>(keys + place);
        std::copy_n(&p.rows[from], dim, &all[first + place * dim]);
      }
      there.runs.push_back({run.table, keys, 2 * run.count + 1});
      keys += 2 * run.count + 1;
    }
  }
  auto rows = memory->Take(all.size());
  if (!rows.ok()) return rows.status();
  there.rows = *std::move(rows);
  if (absl::Status s = memory->Upload(all.data(), all.size(), there.rows.get()); !s.ok()) return s;
  auto gradients = memory->Take(p.rows.size());
  if (!gradients.ok()) return gradients.status();
  there.gradients = *std::move(gradients);
  const std::vector<float> none(p.rows.size(), NAN);
  if (absl::Status s = memory->Upload(none.data(), none.size(), there.gradients.get()); !s.ok()) {
    return s;
  }
  return there;
}

absl::Status ReadGradients(const ProblemThere& there, StepResult* result) {
  return there.memory->Download(there.gradients.get(), result->rows.size(), result->rows.data());
}

double Error(const std::vector<float>& got, const std::vector<float>& right) {
  if (got.size() != right.size()) return INFINITY;
  double most = 0, worst = 0;
  for (const float x : right) most = std::max<double>(most, std::fabs(x));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(double{got[i]} - double{right[i]});
    if (!(error <= worst)) worst = std::isfinite(error) ? error : INFINITY;
  }
  return worst == 0 ? 0 : worst / std::max(most, 1e-30);
}

double Error(const StepResult& got, const StepResult& right, double tolerance, std::string* where) {
  double worst = 0;
  const auto add = [&](const std::string& name, double error) {
    if (!(error <= tolerance)) *where += " " + name + " by " + std::to_string(error);
    worst = std::max(worst, error);
  };
  add("predictions", Error(got.predictions, right.predictions));
  add("rows", Error(got.rows, right.rows));
  add("loss", std::fabs(got.loss - right.loss) / std::max(1e-30, std::fabs(right.loss)));
  for (size_t t = 0; t < right.tensors.size(); ++t) {
    add("tensor " + std::to_string(t), Error(got.tensors[t], right.tensors[t]));
  }
  return worst;
}

}  // namespace strata::testing
