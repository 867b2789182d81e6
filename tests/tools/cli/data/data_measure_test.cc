#include "tools/cli/data/data_measure.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

// Of 200 lines the last ten have five features of their own each, the others all the same one;
// held-out lines have four.
TEST_CASE("data are measured from their first line to their last", "[estimate]") {
  const TempFolder folder;
  TrainingJob job = testing::SmallJob(folder.path());
  JobSpec& spec = *job.mutable_spec();
  const auto write = [&](const std::string& name, int lines, const auto& features_of) {
    std::ofstream out(folder.path() + "/" + name);
    for (int line = 0; line < lines; ++line) {
      out << line % 2;
      for (const int feature : features_of(line)) out << ' ' << feature << ":1";
      out << '\n';
    }
    return folder.path() + "/" + name;
  };
  spec.mutable_data()->set_train(0, write("sorted", 200, [](int line) {
                                   if (line < 190) return std::vector<int>{7};
                                   std::vector<int> features;
                                   for (int f = 0; f < 5; ++f) features.push_back(line * 10 + f);
                                   return features;
                                 }));
  spec.mutable_data()->clear_eval();
  spec.mutable_data()->add_eval(write("held_out", 3, [](int) {
    return std::vector<int>{1, 2, 3, 4};
  }));
  spec.mutable_training()->set_batch_size(10);
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  const auto data = MeasureData(job.spec());
  INFO(data.status());
  REQUIRE(data.ok());
  CHECK(data->keys_per_batch == 50);
  CHECK(data->features_per_batch == 50);
  CHECK(data->eval_lines == 3);
  CHECK(data->task_line_bytes == data->line_bytes);
  CHECK(data->of_lines.OfLongest(10) == 10 * 5);
  CHECK(data->of_lines.OfLongest(10 + 3) == 10 * 5 + 3 * 4);
  CHECK(data->of_lines.OfLongest(1000) == 10 * 5 + 3 * 4 + 190);
}

}  // namespace
}  // namespace strata
