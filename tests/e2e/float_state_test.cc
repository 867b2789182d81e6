// A program that embeds Strata may have told its threads to flush denormals to zero, or to round
// another way: the model is the same to the bit (EXACT.md rule 1).
#include <immintrin.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/mxcsr.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/strata/job.pb.h"
#include "storage/row/layout.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/embedded/predict.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x40, kRoundUp = 0x4000;

// The calling thread with these bits of MXCSR, as a host program would have it; its own again at
// the end.
class Changed {
 public:
  explicit Changed(unsigned bits) : before_(_mm_getcsr()) { _mm_setcsr(before_ | bits); }
  ~Changed() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
};

// Lines whose values lie around 2^-126: what a feature is worth, its gradient and its weight are
// denormals, or become such by the next multiplication.
void WriteTiny(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  for (int l = 0; l < lines; ++l) {
    out << (random() % 2 == 0 ? "1" : "-1");
    for (int f = 0; f < 5; ++f) {
      const char* exponent[] = {"e-39", "e-38", "e-37", "e-20", "e-3"};
      out << ' ' << f * 100 + random() % 20 << ':' << 1 + random() % 9 << exponent[f];
    }
    out << '\n';
  }
}

TrainingJob TinyJob(const std::string& folder) {
  WriteTiny(folder + "/train.libfm", 1, 600);
  WriteTiny(folder + "/eval.libfm", 2, 100);
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("tiny");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train(folder + "/train.libfm");
  spec.mutable_data()->add_eval(folder + "/eval.libfm");
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->set_embedding_dim(8);
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.3);
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(4);
  spec.mutable_training()->set_batch_size(16);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_training()->set_threads(2);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_storage()->set_partitions(256);
  return job;
}

size_t Denormals(const std::string& checkpoint) {
  auto rows = CheckpointRows::Open(checkpoint);
  REQUIRE(rows.ok());
  const uint32_t dim = rows->layout(0).dim;
  size_t found = 0;
  REQUIRE(rows->ReadAll(0,
                        [&](Position, const uint8_t* row) {
                          for (uint32_t i = 0; i < dim; ++i) {
                            uint32_t bits;
                            std::memcpy(&bits, row + size_t{i} * 4, 4);
                            found += (bits & 0x7f800000) == 0 && (bits & 0x7fffff) != 0;
                          }
                          return absl::OkStatus();
                        })
              .ok());
  return found;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("the model does not depend on the float state of who embeds", "[e2e][exact]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = TinyJob(folder.path());
  const auto run = [&](const std::string& name) {
    job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/" + name);
    const JobStatus status = Train(job);
    PredictOptions predict;
    predict.checkpoint_dir = status.checkpoint();
    predict.inputs = {folder.path() + "/eval.libfm"};
    predict.output = folder.path() + "/" + name + ".csv";
    REQUIRE(RunPredict(predict).ok());
    return status;
  };
  for (const char* mode : {"bsp", "async"}) {
    INFO(mode);
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_training()->set_mode(mode);
    if (mode == std::string("async")) {
      // One lane applies its windows in one order; several depend on who comes first.
      spec.mutable_training()->set_lanes(1);
      spec.mutable_replicas()->set_workers(1);
    }
    const JobStatus normal = run(std::string(mode) + "-normal");
    CHECK(Denormals(normal.checkpoint()) > 20);  // else this shows nothing
    for (const unsigned bits : {kFlushToZero | kDenormalsAreZero, kRoundUp}) {
      INFO("bits " << bits);
      const std::string name = std::string(mode) + "-changed-" + std::to_string(bits);
      const Changed changed(bits);
      const JobStatus status = run(name);
      CHECK((_mm_getcsr() & bits) == bits);  // the caller's own is left to it
      CHECK(status.model_hash() == normal.model_hash());
      CHECK(status.result().auc() == normal.result().auc());
      CHECK(status.result().logloss() == normal.result().logloss());
      CHECK(ReadAll(folder.path() + "/" + name + ".csv") ==
            ReadAll(folder.path() + "/" + mode + "-normal.csv"));
    }
  }
}

TEST_CASE("threads of a team are exact, whatever their maker is", "[exact]") {
  const Changed changed(kFlushToZero | kDenormalsAreZero | kRoundUp);
  const auto team = ops::MakeParallel(3);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> helpers{0}, wrong{0};
  // Until a helper has had a part: on a busy machine the caller is done many times before one
  // wakes.
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (helpers == 0 && absl::Now() < give_up) {
    team->For(64, [&](size_t) {
      if (std::this_thread::get_id() == caller) return;
      ++helpers;
      if (!ops::FloatStateIsExact()) ++wrong;
    });
  }
  CHECK(helpers > 0);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace strata
