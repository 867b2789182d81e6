// Indexes of files, made as a job makes them.
#ifndef STRATA_TESTS_WORKER_DATA_INDEX_MADE_INDEX_H_
#define STRATA_TESTS_WORKER_DATA_INDEX_MADE_INDEX_H_

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/index.h"

namespace strata {

inline TextFiles text_files;

inline DataSpec Format(const std::string& format) {
  DataSpec data;
  data.set_format(format);
  return data;
}

inline JobSpec JobOf(const DataSpec& data) {
  JobSpec spec;
  *spec.mutable_data() = data;
  return spec;
}

inline InputIndex Index(const DataSpec& data, const std::vector<std::string>& files) {
  absl::StatusOr<InputIndex> index = BuildIndex(JobOf(data), files, &text_files);
  INFO(index.status().ToString());
  REQUIRE(index.ok());
  return *std::move(index);
}

inline std::string Error(const DataSpec& data, const std::vector<std::string>& files) {
  return std::string(BuildIndex(JobOf(data), files, &text_files).status().message());
}

}  // namespace strata

#endif  // STRATA_TESTS_WORKER_DATA_INDEX_MADE_INDEX_H_
