#include "tools/bench/train/tiered_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/core/memory_part.h"
#include "proto/job/job_spec.h"
#include "tools/bench/cluster/daemons.h"
#include "tools/bench/job/train_case.h"
#include "tools/cli/data/data_measure.h"
#include "tools/cli/data/estimate.h"

namespace strata::bench {
namespace {

constexpr uint64_t kFields = 26;
constexpr uint64_t kZipfLines = 40 * kTrainBatch;
constexpr double kZipf = 1.05;
constexpr absl::Duration kPatience = absl::Seconds(600);

// Lines of the file before those by Zipf's law; each is an id of every field.
uint64_t LinesOfAllIds(uint64_t ids) { return (ids + kFields - 1) / kFields; }

absl::Status WriteData(uint64_t ids, const std::string& path) {
  const uint64_t all = LinesOfAllIds(ids);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const double s = 1 - kZipf;
  const double range = std::pow(static_cast<double>(all + 1), s) - 1;
  std::ofstream out(path);
  std::string line;
  for (uint64_t i = 0; i < all + kZipfLines; ++i) {
    line = i % 4 == 0 ? "1" : "0";
    for (int numeric = 0; numeric < 13; ++numeric) absl::StrAppend(&line, "\t", 3 * numeric);
    for (uint64_t field = 0; field < kFields; ++field) {
      uint64_t id = i;
      if (i >= all) {  // the inverse of the continuous distribution
        const auto rank = static_cast<uint64_t>(std::pow(uniform(random) * range + 1, 1 / s)) - 1;
        id = (std::min(all - 1, rank) * 2654435761ull + 12345) % all;
      }
      absl::StrAppendFormat(&line, "\t%08x", id);
    }
    out << line << '\n';
  }
  out.close();
  if (!out) return absl::InternalError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureTieredMemory(const BenchOptions& o, const TrainingJob& job, uint64_t ids,
                                 const Report& report) {
  const std::string file = o.directory + "/tiered.tsv";
  if (absl::Status s = WriteData(ids, file); !s.ok()) return s;
  TrainingJob files = job;
  files.mutable_spec()->mutable_data()->set_train(0, file);
  files.mutable_spec()->mutable_training()->set_epochs(10'000);  // more than is waited for
  if (absl::Status s = ResolveJob(files); !s.ok()) return s;
  auto data = MeasureData(files.spec());
  if (!data.ok()) return data.status();
  auto estimate = EstimateJob(files.spec(), *data, 0, std::thread::hardware_concurrency());
  if (!estimate.ok()) return estimate.status();
  auto cluster = Daemons::Start({.directory = o.directory + "/tiered-memory"});
  if (!cluster.ok()) return cluster.status();
  if (auto job = (*cluster)->Submit(files); !job.ok()) return job.status();
  if (absl::Status s = (*cluster)->Await(data->lines, kPatience); !s.ok()) return s;
  for (const ProcessEstimate& process : estimate->processes) {
    if (process.role == "scheduler") continue;
    constexpr double kMiB = 1 << 20;
    const ChildProcess& child = (*cluster)->process(absl::StrCat(process.role, "-0"));
    Figure f;
    f.bench = "tiered_training";
    f.name = absl::StrCat("resident memory of a ", process.role, " process");
    f.value = static_cast<double>(child.ResidentBytes()) / kMiB;
    f.unit = "MiB";
    f.limit = static_cast<double>(TotalBytes(process.parts)) / kMiB;
    f.limit_name = "strata estimate, wanted within 5 %";
    report(f);
  }
  return absl::OkStatus();
}

}  // namespace strata::bench
