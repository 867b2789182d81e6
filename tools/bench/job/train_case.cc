#include "tools/bench/job/train_case.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata::bench {

TrainingJob MakeTrainJob(const TrainCase& c) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name(absl::StrCat("bench-", c.model));
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("criteo");
  spec.mutable_data()->add_train("memory");
  ModelSpec& model = *spec.mutable_model();
  model.set_type(c.model);
  if (model.type() == "dlrm") {  // the peer's layers
    for (uint32_t width : {512, 256, 64}) model.add_bottom_hidden(width);
    for (uint32_t width : {512, 256}) model.add_hidden(width);
  }
  spec.mutable_optimizer()->mutable_sparse()->set_type(c.optimizer);
  spec.mutable_optimizer()->mutable_dense()->set_type(c.optimizer);
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.01f);
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(0.01f);
  spec.mutable_training()->set_lanes(1);
  spec.mutable_training()->set_batch_size(kTrainBatch);
  spec.mutable_training()->set_threads(kTrainThreads);
  spec.mutable_storage()->set_durability("logged");
  return job;
}

std::optional<double> RunPeer(const TrainCase& c, const BenchOptions& o) {
  if (o.baselines.empty() || c.bar == 0) return std::nullopt;
  // OpenBLAS by itself takes its kernels for Haswell on some CPUs that have AVX-512.
  const char* const core = __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell";
  const std::string command = absl::StrCat(
      "cd '", o.baselines, "/torch' && MALLOC_MMAP_THRESHOLD_=1073741824 ",
      "MALLOC_TRIM_THRESHOLD_=8589934592 ",
      "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp OMP_NUM_THREADS=", kTrainThreads,
      " OPENBLAS_CORETYPE=", core, " PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 ctr.py ", c.model,
      " ", c.optimizer, " ", kTrainThreads, " ", o.seconds, " 2>&1");
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), n);
  }
  pclose(pipe);
  const size_t at = text.find("samples/s median ");
  if (at == std::string::npos) {
    std::fprintf(stderr, "the peer said: %s\n", text.c_str());
    return std::nullopt;
  }
  return std::strtod(text.c_str() + at + 17, nullptr);
}

void ReportSteps(const std::string& bench, const TrainWindow& window, const Report& report) {
  const double to_ms = 1e3 * kTrainBatch / window.examples;  // from seconds to milliseconds a step
  double sum = 0;
  for (size_t i = 0; i < kStages; ++i) {
    Figure f;
    f.bench = bench;
    f.name = absl::StrCat("a step: ", kStageNames[i]);
    if (window.stages.ahead[i] > 0) {
      absl::StrAppendFormat(&f.name, " (and %.2f ms ahead)", window.stages.ahead[i] * to_ms);
    }
    f.value = window.stages.path[i] * to_ms;
    f.unit = "ms";
    sum += f.value;
    report(f);
  }
  Figure f;
  f.bench = bench;
  f.name = "a step: all stages";
  f.value = sum;
  f.unit = "ms";
  f.limit = window.seconds * to_ms;
  f.limit_name = "a step by the clock";
  report(f);
}

}  // namespace strata::bench
