#include "tools/gpu/check/check.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/gpu/check/catch_output.h"
#include "tools/gpu/check/child.h"
#include "tools/gpu/check/part_output.h"
#include "tools/gpu/check/sanitizer_output.h"

namespace strata::gpu_check {
namespace {

constexpr const char* kSanitizer = "compute-sanitizer";
constexpr int kSanitizerFound = 86;  // the exit code that it is asked for when it finds an error

PartResult Ended(PartState state, std::string reason) {
  PartResult result;
  result.state = state;
  result.reason = std::move(reason);
  return result;
}

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// "" when there is none.
std::string FindSanitizer(const CheckOptions& options) {
  std::vector<std::string> folders = absl::StrSplit(options.path, ':', absl::SkipEmpty());
  folders.push_back(options.toolkit + "/bin");
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", kSanitizer);
    if (IsProgram(path)) return path;
  }
  return "";
}

ChildOptions ChildOf(const CheckOptions& options, const PartEntry& entry, double limit_seconds) {
  ChildOptions child;
  child.environment = options.environment;
  child.log_path = absl::StrCat(options.logs, "/", LogName(entry.name));
  child.limit_seconds = limit_seconds;
  return child;
}

// For who reads the report.
std::string WhereLogIs(const CheckOptions& options, const PartEntry& entry) {
  return absl::StrCat(LogName(entry.name), " in ",
                      options.archive.empty() ? options.logs : options.archive);
}

PartResult RunTest(const CheckOptions& options, const PartEntry& entry, double limit_seconds) {
  ChildOptions child = ChildOf(options, entry, limit_seconds);
  child.argv = {absl::StrCat(options.programs, "/", entry.program)};
  const auto ended = RunChild(child);
  if (!ended.ok()) return Ended(PartState::kFailed, std::string(ended.status().message()));
  const auto counts = CountCases(ended->output);
  PartResult result;
  if (counts.ok()) result.cases = *counts;
  if (ended->exit_code == 0 && counts.ok() && counts->failed == 0) {
    if (counts->passed > 0) return result;
    result.state = PartState::kSkipped;
    result.reason = "no case of it ran";
    return result;
  }
  result.state = PartState::kFailed;
  const std::string failure = FirstFailure(ended->output);
  result.reason = absl::StrCat(HowItEnded(*ended, child), failure.empty() ? "" : ": ", failure,
                               "; see ", WhereLogIs(options, entry));
  return result;
}

// Bars, and what there is.
PartResult RunOwnPart(const CheckOptions& options, const PartEntry& entry, double limit_seconds) {
  ChildOptions child = ChildOf(options, entry, limit_seconds);
  child.argv = {options.self, "--part", entry.program, "--part_seconds",
                absl::StrCat(limit_seconds)};
  child.argv.insert(child.argv.end(), options.part_arguments.begin(), options.part_arguments.end());
  const auto ended = RunChild(child);
  if (!ended.ok()) return Ended(PartState::kFailed, std::string(ended.status().message()));
  PartResult result = ParsePartOutput(ended->output);
  if (ended->exit_code == kPartSkipped) {
    result.state = PartState::kSkipped;
    result.reason = LastWords(ended->output);
    return result;
  }
  if (ended->exit_code != 0) {
    result.state = PartState::kFailed;
    result.reason = absl::StrCat(HowItEnded(*ended, child), ": ", LastWords(ended->output));
    return result;
  }
  if (entry.kind == PartKind::kBar && result.state == PartState::kPassed && result.lines.empty()) {
    return Ended(PartState::kFailed, "it told no figure");
  }
  size_t missed = 0;
  for (const BarLine& line : result.lines) missed += MissedBars(line).empty() ? 0 : 1;
  if (missed > 0 && result.state == PartState::kPassed) {
    result.state = PartState::kFailed;
    result.reason = absl::StrCat(missed, " of ", result.lines.size(), " lines missed their bar");
  }
  return result;
}

PartResult RunSanitized(const CheckOptions& options, const PartEntry& entry,
                        const std::string& sanitizer, double limit_seconds) {
  ChildOptions child = ChildOf(options, entry, limit_seconds);
  child.argv = {sanitizer,
                "--tool",
                entry.kind == PartKind::kMemcheck ? "memcheck" : "racecheck",
                "--error-exitcode",
                absl::StrCat(kSanitizerFound),
                absl::StrCat(options.programs, "/", entry.program)};
  child.environment.push_back("STRATA_TEST_APIS=device");  // tests/ops/cuda/api/test_apis.h
  const auto ended = RunChild(child);
  if (!ended.ok()) return Ended(PartState::kFailed, std::string(ended.status().message()));
  PartResult result;
  const auto counts = CountCases(ended->output);
  if (counts.ok()) result.cases = *counts;
  const auto errors = CountErrors(ended->output);
  const std::string how = HowItEnded(*ended, child);
  if (errors.ok() && (errors->errors > 0 || errors->hazards > 0)) {
    result.state = PartState::kFailed;
    result.reason = absl::StrCat(errors->errors, " errors, ", errors->hazards,
                                 " hazards: ", errors->first, "; see ", WhereLogIs(options, entry));
  } else if (!errors.ok() || ended->timed_out) {
    // It does not run everywhere (a container may forbid it), and it is slow.
    result.state = PartState::kSkipped;
    result.reason =
        absl::StrCat(how, errors.ok() ? "" : ": ", errors.ok() ? "" : errors.status().message());
  } else if (ended->exit_code != 0) {
    result.state = PartState::kFailed;
    result.reason = absl::StrCat(how, "; see ", WhereLogIs(options, entry));
  }
  return result;
}

}  // namespace

std::string LogName(const std::string& part) {
  std::string file = part;
  std::replace(file.begin(), file.end(), ' ', '-');
  return file + ".log";
}

std::vector<PlannedPart> PlanChecks(const std::vector<PartEntry>& entries,
                                    const CheckOptions& options) {
  const std::string sanitizer = FindSanitizer(options);
  std::vector<PlannedPart> plan;
  for (const PartEntry& entry : entries) {
    PlannedPart part;
    part.name = entry.name;
    part.missing = entry.missing;
    part.least_seconds = entry.least_seconds;
    part.most_seconds = entry.most_seconds;
    part.all_need_it = entry.kind == PartKind::kDevice;
    const bool own = entry.kind == PartKind::kDevice || entry.kind == PartKind::kBar;
    const bool sanitized = entry.kind == PartKind::kMemcheck || entry.kind == PartKind::kRacecheck;
    const std::string program = absl::StrCat(options.programs, "/", entry.program);
    if (part.missing.empty() && !own && !IsProgram(program)) {
      part.missing = absl::StrCat("there is no ", program);
    }
    if (part.missing.empty() && sanitized && sanitizer.empty()) {
      part.missing = absl::StrCat("there is no ", kSanitizer, " in PATH nor in ", options.toolkit);
    }
    part.run = [options, entry, own, sanitized, sanitizer](double limit_seconds) {
      if (own) return RunOwnPart(options, entry, limit_seconds);
      if (sanitized) return RunSanitized(options, entry, sanitizer, limit_seconds);
      return RunTest(options, entry, limit_seconds);
    };
    plan.push_back(std::move(part));
  }
  return plan;
}

}  // namespace strata::gpu_check
