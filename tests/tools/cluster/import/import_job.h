// A job of several tables, rows for it, and calls of ImportRows that succeed or are refused.
#ifndef STRATA_TESTS_TOOLS_CLUSTER_IMPORT_IMPORT_JOB_H_
#define STRATA_TESTS_TOOLS_CLUSTER_IMPORT_IMPORT_JOB_H_

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "proto/core/ids.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"
#include "tests/tools/cluster/import/written_arrays.h"
#include "tools/cluster/import/import.h"

namespace strata::testing {

inline constexpr uint32_t kDim = 4;

// Element c of the embedding of key k; every bit pattern of its kind may come.
inline float Value(uint64_t key, uint32_t c) {
  return std::ldexp(static_cast<float>(key * 37 + c * 5 + 1), static_cast<int>(key % 60) - 30) *
         (c % 2 == 0 ? 1.0f : -1.0f);
}

inline std::vector<float> RowOf(uint64_t key) {
  std::vector<float> out;
  for (uint32_t c = 0; c < kDim; ++c) out.push_back(Value(key, c));
  return out;
}

inline void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// libffm of fields 0, 1 and 2, whose tables are item, user and item.
inline TrainingJob Job(const std::string& folder) {
  std::ofstream data(folder + "/train.libffm");
  for (int i = 0; i < 400; ++i) {
    data << i * 7 % 3 % 2 << " 0:" << i % 50 << ":1 1:" << i % 40 << ":1 2:" << 50 + i % 9
         << ":1\n";
  }
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("imports");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libffm");
  spec.mutable_data()->add_train(folder + "/train.libffm");
  spec.mutable_data()->add_eval(folder + "/train.libffm");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->set_embedding_dim(kDim);
  spec.mutable_model()->add_hidden(8);
  spec.add_tables()->set_name("item");
  spec.add_tables()->set_name("user");
  spec.mutable_tables(1)->mutable_optimizer()->set_type("adam");
  for (int f = 0; f < 3; ++f) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::to_string(f));
    field.set_kind("multiValued");
    field.set_table(f == 1 ? "user" : "item");
  }
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_batch_size(16);
  spec.mutable_training()->set_threads(1);
  spec.mutable_storage()->set_partitions(64);
  spec.mutable_output()->set_predictions(folder + "/predictions");
  return job;
}

inline absl::StatusOr<Key> Raw(const std::string& value) {
  uint64_t key = 0;
  if (absl::SimpleAtoi(value, &key)) return Key(key);
  return absl::InvalidArgumentError("no number; give one");
}

// Keys first .. first + count - 1, backwards, and their rows.
inline ImportSource Rows(const std::string& folder, const std::string& table, uint64_t first,
                         uint64_t count) {
  std::string keys;
  std::vector<float> rows;
  for (uint64_t k = first + count; k > first; --k) {
    keys += std::to_string(k - 1) + "\n";
    for (const float v : RowOf(k - 1)) rows.push_back(v);
  }
  const std::string name = folder + "/" + table + std::to_string(first);
  Write(name + ".txt", keys);
  Write(name + ".npy", Npy("<f4", "(" + std::to_string(count) + ", 4)", BytesOf(rows)));
  return {.table = table, .keys = name + ".txt", .rows = name + ".npy", .key_of = Raw};
}

inline ImportOptions Options(const TrainingJob& job, const std::string& output,
                             std::vector<ImportSource> sources) {
  ImportOptions options{.job = job, .sources = std::move(sources), .output = output};
  REQUIRE(ResolveJob(options.job).ok());
  return options;
}

inline ImportSummary Import(const ImportOptions& options) {
  const auto done = ImportRows(options);
  INFO(done.status());
  REQUIRE(done.ok());
  return *done;
}

inline std::string Refused(const ImportOptions& options) {
  const auto done = ImportRows(options);
  REQUIRE_FALSE(done.ok());
  CHECK_FALSE(std::filesystem::exists(options.output));
  const std::string text(done.status().message());
  CHECK(text.find('\n') == std::string::npos);
  return text;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_TOOLS_CLUSTER_IMPORT_IMPORT_JOB_H_
