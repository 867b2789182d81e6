#include "tools/gpu/check/part_list.h"

#include "absl/strings/str_cat.h"

namespace strata::gpu_check {
namespace {

// Whether kernels of a test are worth running under compute-sanitizer.
enum class Sanitized : uint8_t { kNo, kYes };

struct TestBinary {
  const char* folder;
  const char* name;
  Sanitized sanitized;
  const char* missing;
};

// kernels_test is none of them: it reads what the compiler said, which the build's machine tests.
constexpr TestBinary kTests[] = {
    {"ops/cuda/api", "memory_test", Sanitized::kYes, ""},
    {"ops/cuda", "elements_test", Sanitized::kYes, ""},
    {"ops/cuda/rows", "pool_test", Sanitized::kYes, ""},
    {"ops/cuda/rows", "coalesce_test", Sanitized::kYes, ""},
    {"ops/cuda/rows", "apply_test", Sanitized::kYes, ""},
    {"ops/cuda/nn", "fm_test", Sanitized::kYes, ""},
    {"ops/cuda/nn", "pairwise_test", Sanitized::kYes, ""},
    {"ops/cuda/nn", "embedding_test", Sanitized::kYes, ""},
    {"ops/cuda/nn", "layers_test", Sanitized::kYes, ""},
    {"ops/cuda/nn", "losses_test", Sanitized::kNo, ""},
    {"ops/cuda/nn", "max_pool_test", Sanitized::kNo, ""},
    {"ops/cuda/rows", "merge_rows_test", Sanitized::kYes, ""},
    {"ops/cuda/rows", "scatter_test", Sanitized::kYes, ""},
    {"ops/cuda/products", "blas_test", Sanitized::kNo, ""},
    {"ops/cuda/products", "blas_search_test", Sanitized::kNo, ""},
    {"ops/cuda/rows", "lanes_test", Sanitized::kNo, ""},
    {"ops/cuda", "fault_test", Sanitized::kNo, ""},
    {"storage/gpu/device", "backend_test", Sanitized::kYes, ""},
    {"storage/gpu/device", "look_up_test", Sanitized::kYes, ""},
    {"storage/gpu", "table_device_test", Sanitized::kNo, ""},
    {"worker/device", "step_test", Sanitized::kNo, ""},
    {"worker/device", "dense_step_test", Sanitized::kYes, ""},
    {"e2e", "server_tiers_test", Sanitized::kNo, ""},
};

// What a short time on a device is for goes before the tests: these check what they compute
// themselves.
enum class Turn : uint8_t { kFirst, kAfterTests };

struct Bar {
  const char* name;
  double least_seconds, most_seconds;
  Turn turn;
};
// The dlrm bar fills two servers, and trains seven times.
constexpr Bar kBars[] = {
    {"mlp", 20, 90, Turn::kFirst},
    {"dlrm", 45, 200, Turn::kFirst},
    {"gather", 12, 90, Turn::kAfterTests},
    {"apply", 15, 90, Turn::kAfterTests},
    {"coalesce", 8, 90, Turn::kAfterTests},
    {"find", 12, 90, Turn::kAfterTests},
    {"find-or-insert", 12, 90, Turn::kAfterTests},
};

PartEntry Entry(PartKind kind, std::string name, std::string program) {
  PartEntry entry;
  entry.kind = kind;
  entry.name = std::move(name);
  entry.program = std::move(program);
  return entry;
}

std::string LabelOf(const TestBinary& test) {
  return absl::StrCat("//tests/", test.folder, ":", test.name);
}

void AddBars(Turn turn, std::vector<PartEntry>* parts) {
  for (const Bar& bar : kBars) {
    if (bar.turn != turn) continue;
    PartEntry entry = Entry(PartKind::kBar, absl::StrCat("bar ", bar.name), bar.name);
    entry.least_seconds = bar.least_seconds;
    entry.most_seconds = bar.most_seconds;
    parts->push_back(std::move(entry));
  }
}

void AddSanitized(PartKind kind, const char* tool, std::vector<PartEntry>* parts) {
  for (const TestBinary& test : kTests) {
    if (test.sanitized == Sanitized::kNo) continue;
    PartEntry entry = Entry(kind, absl::StrCat(tool, " ", test.name), test.name);
    entry.label = LabelOf(test);
    entry.missing = test.missing;
    entry.least_seconds = 4;
    entry.most_seconds = 60;
    parts->push_back(std::move(entry));
  }
}

}  // namespace

std::vector<PartEntry> AllParts() {
  std::vector<PartEntry> parts;
  parts.push_back(Entry(PartKind::kDevice, "device", "device"));
  parts.back().least_seconds = 5;
  parts.back().most_seconds = 60;  // the first use of a device may load a driver
  AddBars(Turn::kFirst, &parts);
  for (const TestBinary& test : kTests) {
    PartEntry entry = Entry(PartKind::kTest, absl::StrCat("test ", test.name), test.name);
    entry.label = LabelOf(test);
    entry.missing = test.missing;
    entry.least_seconds = 5;
    entry.most_seconds = 90;
    parts.push_back(std::move(entry));
  }
  AddBars(Turn::kAfterTests, &parts);
  AddSanitized(PartKind::kMemcheck, "memcheck", &parts);
  AddSanitized(PartKind::kRacecheck, "racecheck", &parts);
  return parts;
}

std::vector<std::string> TestLabels() {
  std::vector<std::string> labels;
  for (const TestBinary& test : kTests) {
    if (*test.missing == '\0') labels.push_back(LabelOf(test));
  }
  return labels;
}

}  // namespace strata::gpu_check
