#include "worker/data/reading/data_access.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

TEST_CASE("what the index pass decompressed is not decompressed again", "[data]") {
  const ScratchFolder folder;
  const std::string copies = folder.Path("copies"), away = folder.Path("away");
  std::filesystem::create_directory(copies);
  const auto data = DataAccess::MakeFiles({.directory = copies, .standard_input = ""});
  JobSpec spec;
  spec.mutable_data()->set_format("libsvm");
  const std::string train = folder.Write("train.gz", Gzip("1 1:1\n0 2:1\n"));
  const std::string eval = folder.Write("eval.gz", Gzip("1 3:1\n"));
  const auto train_index = data->BuildIndex(spec, {train}, {});
  const auto eval_index = data->BuildIndex(spec, {eval}, {});
  REQUIRE(train_index.ok());
  REQUIRE(eval_index.ok());
  // Without the folder no further copy can be made.
  std::filesystem::rename(copies, away);
  {
    auto first = data->Open(spec, *train_index, train_index->shape());
    INFO(first.status().ToString());
    REQUIRE(first.ok());
    Batch batch;
    REQUIRE((*first)->ReadLines(0, 9, &batch).ok());
    CHECK(batch.size == 2);
    CHECK(data->Open(spec, *train_index, train_index->shape()).ok());
    CHECK(data->Open(spec, *eval_index, train_index->shape()).ok());
  }
  // With the last source the copies went, too.
  CHECK(absl::IsUnavailable(data->Open(spec, *train_index, train_index->shape()).status()));
  CHECK(absl::IsUnavailable(data->Open(spec, *eval_index, train_index->shape()).status()));
  std::filesystem::rename(away, copies);
  CHECK(data->Open(spec, *train_index, train_index->shape()).ok());
}

}  // namespace
}  // namespace strata
