// The bytes of checkpoints, whole and by increments, and of what is made of them: exports,
// quantised copies, deltas, streams of removed keys.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/core/checksum.h"
#include "tests/bad_input/user.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"
#include "tests/golden/golden_json.h"

namespace strata::golden {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("LOCK.", 0) != 0) names.push_back(name);  // who wrote there last
  }
  std::sort(names.begin(), names.end());
  return names;
}

// First line of a checkpoint's manifest.
std::string ManifestOf(const User& user, const std::string& checkpoint) {
  const std::string text = user.Read(checkpoint + "/MANIFEST.json");
  return text.substr(0, text.find('\n'));
}

uint64_t U64At(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t CrcOf(const std::string& bytes) {
  return Crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// A checkpoint's file (storage/FORMAT.md) without what is drawn for each run: the ids of cluster
// and job, and the checksums in which they are.
std::string WithoutIds(std::string bytes) {
  const auto zero = [&bytes](size_t at, size_t n) {
    REQUIRE(at + n <= bytes.size());
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), n, '\0');
  };
  const size_t trailer = bytes.size() - 32;
  const size_t footer = U64At(bytes, trailer + 8);
  const size_t payload = U64At(bytes, footer + 32);
  const uint32_t tables = static_cast<uint32_t>(U64At(bytes, 64));
  zero(72, 32);                        // cluster, job UID
  zero(160 + 16 * tables + 4, 4);      // the header's CRC
  zero(footer + 52, 4);                // the footer's
  zero(footer + 56 + payload - 8, 4);  // the header's, again
  return bytes;
}

// The model's hash, and a line for each file, as the manifest has them: rows, hash ... But the
// CRC32C is that of the file without ids.
void CheckCheckpoints(const User& user, const std::string& job, GoldenFile& golden) {
  for (const std::string& step : NamesIn(user.Path(job + "/ck"))) {
    const std::string checkpoint = job + "/ck/" + step;
    const Json manifest = Json::parse(ManifestOf(user, checkpoint));
    std::string text = "modelHash " + manifest.at("modelHash").get<std::string>() + '\n';
    for (Json file : manifest.at("files")) {
      const std::string bytes = user.Read(checkpoint + "/" + file.at("name").get<std::string>());
      CHECK(file.at("crc32c").get<uint32_t>() == CrcOf(bytes));
      file["crc32c"] = CrcOf(WithoutIds(bytes));
      file["clusterId"] = "<id>";
      file["jobUid"] = "<id>";
      text += file.dump() + '\n';
    }
    golden.Check(checkpoint, text);
  }
}

// A line for each file of a folder: name, bytes, fingerprint of its bytes.
std::string FilesIn(const User& user, const std::string& folder) {
  std::string text;
  for (const std::string& name : NamesIn(user.Path(folder))) {
    const std::string bytes = user.Read(folder + "/" + name);
    text += name + ' ' + std::to_string(bytes.size()) + ' ' + Fingerprint(bytes) + '\n';
  }
  return text;
}

struct Copy {
  const char* folder;
  const char* command;  // writes the folder
};
constexpr Copy kCopies[] = {
    {"npy", "export --checkpoint increments/ck --output npy --with-state"},
    {"safetensors",
     "export --checkpoint life_cycle_all/ck --output safetensors --format safetensors "
     "--shard-bytes 8KiB"},
    {"delta", "export --checkpoint life_cycle_all/ck --output delta --format delta --with-state"},
    {"delta_since",
     "export --checkpoint increments_life/ck --output delta_since --format delta --since 5"},
    {"fp16", "checkpoint quantise life_cycle_all/ck fp16 --type fp16"},
    {"int8", "checkpoint quantise increments/ck int8 --type int8"},
};

TEST_CASE("checkpoints and what is made of them have the bytes that they always had", "[golden]") {
  const User user;
  WriteData(user);
  GoldenFile golden("checkpoints");
  for (const char* job : {"increments", "increments_life", "resumed_increment", "life_cycle_all",
                          "snapshots", "async", "easgd"}) {
    if (!TrainJob(user, JobNamed(job)).empty()) CheckCheckpoints(user, job, golden);
  }
  const Masks masks(user.folder());
  const std::string checkpoint = "increments/ck/step-000000000020";
  golden.Check(checkpoint + "/MANIFEST.json",
               masks.Apply("manifest", ManifestOf(user, checkpoint)));
  golden.Check("life_cycle_all/removed", FilesIn(user, "life_cycle_all/removed"));
  for (const Copy& copy : kCopies) {
    const ProgramResult r = user.Strata(copy.command);
    INFO(copy.command << "\n" << r.err);
    REQUIRE(r.exit_code == 0);
    golden.Check(copy.folder, FilesIn(user, copy.folder));
  }
  golden.Finish();
}

}  // namespace
}  // namespace strata::golden
