// What a run of gpu_check found, part by part.
#ifndef STRATA_TOOLS_GPU_REPORT_REPORT_H_
#define STRATA_TOOLS_GPU_REPORT_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/gpu/report/bar_line.h"

namespace strata::gpu_check {

enum class PartState : uint8_t { kPassed, kFailed, kSkipped };

// Test cases.
struct CaseCounts {
  uint32_t passed = 0, failed = 0, skipped = 0;
  friend bool operator==(const CaseCounts&, const CaseCounts&) = default;
};

struct PartResult {
  std::string name;
  PartState state = PartState::kPassed;
  std::string reason;    // why it failed or was skipped
  bool no_time = false;  // skipped, since too little of the budget was left
  double seconds = 0;
  CaseCounts cases;                                        // of a test
  std::vector<std::pair<std::string, std::string>> facts;  // "driver": "580.65"
  std::vector<BarLine> lines;                              // of a bar
};

struct Report {
  double budget_seconds = 0;
  bool device_found = true;  // else nothing but the search for it was run
  bool finished = false;     // every part has its turn behind it
  // A part has passed beside those that all need, which look for a device and try nothing on it.
  bool proven = false;
  std::vector<PartResult> parts;
};

const char* StateName(PartState state);  // "passed", "failed", "skipped"

// 0: everything that ran passed; 1: something failed; 3: nothing did, but nothing is proven; 77:
// there is no device.
int ExitCodeOf(const Report& report);

// JSON for programs: {"budget_seconds", "device_found", "finished", "proven", "exit_code", "parts":
// [{"name", "state", "reason", "no_time", "seconds", "cases", "facts", "lines"}]}; a line is
// BarLineJson's with "of_copy", "of_probe" and "missed" (texts).
std::string ReportJson(const Report& report);

// Writes it beside `path` and renames: whoever reads finds the old report or this one. The system's
// error names the path, and nothing of this report stays.
absl::Status WriteReport(const Report& report, const std::string& path);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_REPORT_REPORT_H_
