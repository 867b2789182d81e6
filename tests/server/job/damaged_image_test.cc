// Base images that are damaged anywhere, of all shards at once: none of their rows is seen again,
// whatever part of them had been loaded, and the log has everything.
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "server/job/job_folder.h"
#include "server/job/opening.h"
#include "server/snapshot/image_files.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

constexpr uint64_t kSteps = 30;

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Images of a job at several of its steps, by name.
std::map<std::string, std::string> ImagesOnTheWay() {
  JobBench bench(1);
  bench.plan().log_bytes = 20000;
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= kSteps; ++step) {
    REQUIRE(bench.PushStep(6, step, {{0, 1}}).ok());
  }
  const std::string folder =
      GenerationFolder(bench.folder_.path(), bench.identity(), Generation(1));
  const auto names = ListImages(folder);
  REQUIRE(names.ok());
  REQUIRE(names->size() == 3);
  std::map<std::string, std::string> images;
  for (const ImageName& name : *names) {
    images[ImageFileName(name)] = Bytes(folder + "/" + ImageFileName(name));
  }
  return images;
}

TEST_CASE("rows of damaged images are not seen again, also below DRAM", "[service][recovery]") {
  const auto references = References(6, 1, kSteps);
  const auto images = ImagesOnTheWay();
  for (const bool row_file : {false, true}) {
    INFO((row_file ? "row file" : "RocksDB"));
    std::mt19937_64 random(3);
    JobBench bench(1);
    bench.LimitDram();
    bench.plan().row_file = row_file;
    bench.Start();
    bench.plan().was_open = true;
    REQUIRE(bench.OpenSession().ok());
    for (uint64_t step = 1; step <= kSteps; ++step) {
      REQUIRE(bench.PushStep(6, step, {{0, 1}}).ok());
    }
    const std::string folder =
        GenerationFolder(bench.folder_.path(), bench.identity(), Generation(1));
    constexpr uint64_t kPlaces = 16;
    for (uint64_t place = 0; place < kPlaces; ++place) {
      INFO("place " << place << " of " << kPlaces);
      bench.Stop();
      for (const auto& [name, bytes] : images) {
        std::string damaged = bytes;
        // In each of the 16ths of the file; the last one is its very end.
        const uint64_t at = (bytes.size() - 1) * place / (kPlaces - 1);
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        std::ofstream(folder + "/" + name, std::ios::binary) << damaged;
      }
      bench.Restart();
      REQUIRE(bench.recovered_);
      REQUIRE(bench.Hash(kSteps) == references[kSteps].Hash());
      bench.CheckServed(*bench.Pull(kSteps, 0), references[kSteps - 1]);
    }
  }
}

}  // namespace
}  // namespace strata::server
