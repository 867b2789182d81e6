#include "tests/worker/data/reading/opened_source.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/index.h"
#include "worker/data/reading/batch_source.h"
#include "worker/data/reading/file_batch_source.h"
#include "worker/step/batch.h"

namespace strata {

std::shared_ptr<TextFiles> TextFilesOfTest() {
  static const auto* const files = new std::shared_ptr<TextFiles>(std::make_shared<TextFiles>());
  return *files;
}

JobSpec Spec(uint32_t lanes, uint32_t batch, uint32_t buffer) {
  JobSpec spec;
  spec.mutable_data()->set_format("libsvm");
  spec.mutable_data()->mutable_shuffle()->set_buffer_lines(buffer);
  spec.mutable_training()->set_lanes(lanes);
  spec.mutable_training()->set_batch_size(batch);
  spec.mutable_training()->set_seed(3);
  return spec;
}

InputIndex Index(const JobSpec& spec, const std::vector<std::string>& files) {
  absl::StatusOr<InputIndex> index = BuildIndex(spec, files, TextFilesOfTest().get());
  INFO(index.status().ToString());
  REQUIRE(index.ok());
  return *std::move(index);
}

std::unique_ptr<BatchSource> Open(const JobSpec& spec, const InputIndex& index) {
  absl::StatusOr<std::unique_ptr<BatchSource>> source =
      OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest());
  INFO(source.status().ToString());
  REQUIRE(source.ok());
  return *std::move(source);
}

std::vector<uint64_t> Keys(BatchSource& source, uint64_t step, uint32_t lane) {
  Batch batch;
  const absl::Status s = source.Read(Step(step), LaneId(lane), &batch);
  INFO(s.ToString());
  REQUIRE(s.ok());
  REQUIRE(batch.size == batch.keys.size());
  return batch.keys;
}

}  // namespace strata
