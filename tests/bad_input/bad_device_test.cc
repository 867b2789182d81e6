// GPUs that are not there, and memory that cannot be meant, as a user meets them.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/bad_input/user.h"

namespace strata {
namespace {

TEST_CASE("a GPU that is not there is told, and nothing was replaced for it", "[bad_input]") {
  REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "", 1) == 0);
  User user;
  user.Write("train.libfm", GoodLines(200));
  user.WriteJob("  checkpoint: {directory: c}\n");
  REQUIRE(user.Strata("train -f job.yaml").exit_code == 0);
  const std::string train = "train -f job.yaml --overwrite --set spec.";
  CheckSays(user.Strata(train + "storage.gpuBytesPerServer=1MiB"), 2,
            {"spec.storage.gpuBytesPerServer is 1MiB: ", "with spec.storage.gpuBackend: host"});
  CheckSays(user.Strata(train + "worker.precision=bf16"), 2,
            {"spec.worker.precision is bf16, but 0 GPUs are seen here", "give fp32"});
  CheckSays(user.Strata(train + "worker.device=cuda:GPU-1"), 2,
            {"spec.worker.device is cuda:GPU-1: "});
  CheckSays(user.Strata("checkpoint verify c"), 0, {"is whole"});
  CheckSays(user.Daemon("worker", "--dir w --device ''"), 2, {"--device: is empty"});
  CheckSays(user.Daemon("server", "--dir s --device GPU-1"), 1, {"--device GPU-1: "});
  for (const char* bytes : {"0", "-1", "99999999999999999999"}) {
    for (const char* role : {"server", "worker"}) {
      CheckSays(user.Daemon(role, std::string("--dir d --pinned-bytes ") + bytes), 2,
                {"--pinned-bytes: ", "1048576"});
    }
  }
}

TEST_CASE("bytes of a server that cannot be meant are refused, with what can", "[bad_input]") {
  User user;
  const std::vector<std::pair<std::string, std::vector<std::string>>> flags = {
      {"request-bytes", {"0", "67108863", "-1", "99999999999999999999"}},
      {"log-direct-from-bytes", {"-1", "99999999999999999999", "4 GiB"}},
      {"tier-memtable-bytes", {"1", "65535", "-1", "99999999999999999999"}}};
  const std::map<std::string, std::string> least = {
      {"request-bytes", " 67108864 to "},
      {"log-direct-from-bytes", " 0 to 1125899906842624"},
      {"tier-memtable-bytes", " 65536 to "}};
  for (const auto& [flag, values] : flags) {
    for (const std::string& value : values) {
      CheckSays(user.Daemon("server", "--dir d --listen no:port --" + flag + " '" + value + "'"), 2,
                {"--" + flag + ": ", least.at(flag)});
    }
  }
  for (const char* flag : {"--memory-bytes", "--disk-bytes", "--gpu-bytes"}) {
    for (const char* value : {"much", "-1", "8 QiB", "99999999999999999999"}) {
      CheckSays(user.Daemon("server",
                            std::string("--dir d --listen no:port ") + flag + " '" + value + "'"),
                2, {std::string(flag) + ": ", value});
    }
  }
}

TEST_CASE("a cluster without GPUs refuses a job for one before it replaces anything",
          "[bad_input]") {
  REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "", 1) == 0);
  User user;
  user.Write("train.libfm", GoodLines(200));
  user.WriteJob("  checkpoint: {directory: c}\n");
  user.Up("--servers 1 --workers 1");
  REQUIRE(user.Strata("submit -f job.yaml --wait").exit_code == 0);
  const std::string submit = "submit -f job.yaml --wait --overwrite --set spec.";
  for (const char* precision : {"tf32", "bf16"}) {
    CheckSays(user.Strata(submit + "worker.precision=" + precision), 2,
              {std::string("spec.worker.precision is ") + precision, "or give fp32"});
  }
  CheckSays(user.Strata(submit + "worker.device=cuda:GPU-1"), 2,
            {"spec.worker.device is cuda:GPU-1, ", "or give auto"});
  CheckSays(user.Strata(submit + "storage.gpuBytesPerServer=1MiB"), 2,
            {"spec.storage.gpuBytesPerServer is 1MiB, ", "give spec.storage.gpuBackend: host"});
  // What a shard takes is known to its server alone, once it opens the job.
  CheckSays(user.Strata(submit + "storage.gpuBytesPerServer=1KiB "
                                 "--set spec.storage.gpuBackend=host"),
            1, {"spec.storage.gpuBytesPerServer is too small: "});
  CheckSays(user.Strata("checkpoint verify c"), 0, {"is whole"});
}

}  // namespace
}  // namespace strata
