// gpu_check: proves the GPU libraries on the machine it stands on, and measures them.
// ops/cuda/GPU.md explains how to use it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "proto/runtime/daemon/allocator.h"
#include "tools/gpu/check/check.h"
#include "tools/gpu/check/log_archive.h"
#include "tools/gpu/check/part_choice.h"
#include "tools/gpu/check/part_list.h"
#include "tools/gpu/report/report.h"
#include "tools/gpu/report/result_table.h"
#include "tools/gpu/report/schedule.h"
#include "tools/gpu/run_part.h"

namespace strata::gpu_check {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string out;
  double budget_seconds = 480;
  double part_seconds = 90;
  uint32_t host_batch = 0;
  std::string device, blas_library, part;
  PartChoice choice;
  bool host = false, list_tests = false;
};

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

double Seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// What --out holds, and while parts run what they write.
struct Out {
  explicit Out(const std::string& out)
      : report(out + "/gpu_check.json"),
        archive(out + "/gpu_check.tar"),
        running(out + "/running"),
        scratch(running + "/tmp") {}
  const std::string report, archive, running, scratch;
};

CheckOptions ChecksOf(const Options& options, const Out& out) {
  CheckOptions checks;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  checks.self = self.string();
  checks.programs = self.parent_path().string();
  checks.logs = out.running;
  checks.archive = out.archive;
  const char* path = std::getenv("PATH");
  checks.path = path == nullptr ? "" : path;
  // Servers of tests keep files.
  checks.environment.push_back("TMPDIR=" + fs::absolute(out.scratch, error).string());
  if (!options.device.empty()) {
    checks.environment.push_back("CUDA_VISIBLE_DEVICES=" + options.device);
  }
  if (!options.blas_library.empty()) {
    checks.part_arguments = {"--cublas", options.blas_library};
  }
  if (options.host) checks.part_arguments.push_back("--host");
  return checks;
}

void MakeScratch(const Out& out) {
  std::error_code error;
  fs::remove_all(out.scratch, error);
  fs::create_directories(out.scratch, error);
}

// The folders, a report without parts and an archive without logs, so that whoever is killed in the
// first part leaves those of this run and not of the last.
absl::StatusOr<std::unique_ptr<LogArchive>> PrepareOut(const Options& options, const Out& out) {
  std::error_code error;
  fs::create_directories(options.out, error);
  if (!error) fs::create_directories(out.running, error);
  if (error) return absl::FailedPreconditionError(options.out + ": " + error.message());
  // Logs of a run that was killed.
  std::error_code ended;
  for (fs::directory_iterator at(out.running, ended), end; !ended && at != end;
       at.increment(ended)) {
    if (at->is_regular_file(error)) fs::remove(at->path(), error);
  }
  MakeScratch(out);
  Report none;
  none.budget_seconds = options.budget_seconds;
  if (absl::Status s = WriteReport(none, out.report); !s.ok()) return s;
  return LogArchive::Create(out.archive);
}

// What a part leaves behind goes into the archive, or away.
absl::Status PutAway(const std::string& part, const Out& out, LogArchive* archive) {
  const std::string log = out.running + "/" + LogName(part);
  absl::Status status = archive->Add(log, LogName(part));
  std::error_code error;
  fs::remove(log, error);
  MakeScratch(out);
  return status;
}

int RunAll(const Options& options, const std::vector<PartEntry>& parts) {
  const Out out(options.out);
  const auto archive = PrepareOut(options, out);
  std::error_code error;
  if (!archive.ok()) {
    fs::remove_all(out.running, error);
    std::fprintf(stderr,
                 "gpu_check: --out: %s; name a folder that this user can write to, with room\n",
                 std::string(archive.status().message()).c_str());
    return 2;
  }
  absl::Status written;
  const Report report =
      RunParts(PlanChecks(parts, ChecksOf(options, out)), options.budget_seconds, &Seconds,
               [&](const Report& so_far) {
                 const PartResult& last = so_far.parts.back();
                 std::fprintf(stderr, "%s: %s%s%s\n", last.name.c_str(), StateName(last.state),
                              last.reason.empty() ? "" : ": ", last.reason.c_str());
                 written = PutAway(last.name, out, archive->get());
                 if (written.ok()) written = WriteReport(so_far, out.report);
                 return written;
               });
  fs::remove_all(out.running, error);
  Say(ResultTable(report));
  if (written.ok()) return ExitCodeOf(report);
  std::fprintf(stderr,
               "gpu_check: %s; what is after %s was not tried, and only the table above has what "
               "was: make room, or give another --out, and run it again\n",
               std::string(written.message()).c_str(), report.parts.back().name.c_str());
  return 1;
}

int Main(int argc, char** argv) {
  TuneAllocator();  // as the programs do whose work the bars measure
  Options options;
  CLI::App app("Checks Strata's GPU libraries on this machine and measures them");
  app.add_option(
      "--out", options.out,
      "Folder for the report, gpu_check.json, and for the logs of the parts, gpu_check.tar");
  app.add_option("--budget_seconds", options.budget_seconds, "What the whole may take")
      ->capture_default_str()
      ->check([](const std::string& value) {
        double seconds = 0;
        const bool right = absl::SimpleAtod(value, &seconds) && seconds > 0;
        return std::string(right ? "" : value + " is no number of seconds above 0");
      });
  const auto not_empty = [](const std::string& value) {
    return std::string(value.empty() ? "is empty; name it, or leave the flag out" : "");
  };
  CLI::Option* const device =
      app.add_option("--device", options.device,
                     "UUID of the device (GPU-... or MIG-...); default: the first")
          ->check(not_empty);
  CLI::Option* const cublas =
      app.add_option("--cublas", options.blas_library, "File of cuBLASLt, instead of the search")
          ->check(not_empty);
  app.add_option(
         "--parts", options.choice.parts,
         "Do these alone: kinds (test, bar, memcheck, racecheck), names (mlp, pool_test), or "
         "both (\"test pool_test\"), with commas between them")
      ->check(not_empty);
  app.add_option("--skip", options.choice.skip, "Leave these out, named as for --parts")
      ->check(not_empty);
  app.add_flag("--host", options.host,
               "Bars on host threads at tiny sizes, nothing judged: shows that the program works")
      ->excludes(device)
      ->excludes(cublas);
  app.add_flag("--list-tests", options.list_tests, "Print the labels of the test binaries it runs");
  app.add_option("--part", options.part, "Do this part alone, in this process")->group("");
  app.add_option("--part_seconds", options.part_seconds, "What that part may take")
      ->check(CLI::PositiveNumber)
      ->group("");
  app.add_option("--host_batch", options.host_batch, "With --host: examples of dlrm's batch")
      ->check(CLI::Range(1u, 1u << 20))
      ->group("");
  app.allow_extras(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (options.list_tests) {
    for (const std::string& label : TestLabels()) Say(label + "\n");
    return 0;
  }
  if (!options.part.empty()) {
    return RunPart({options.part, options.host, options.host_batch, options.blas_library,
                    options.part_seconds},
                   &Say);
  }
  if (options.out.empty()) {
    std::fprintf(stderr, "gpu_check: --out is missing; gpu_check --help says more\n");
    return 2;
  }
  const auto parts = ChooseParts(AllParts(), options.choice);
  if (!parts.ok()) {
    std::fprintf(stderr, "gpu_check: %s\n", std::string(parts.status().message()).c_str());
    return 2;
  }
  return RunAll(options, *parts);
}

}  // namespace
}  // namespace strata::gpu_check

int main(int argc, char** argv) { return strata::gpu_check::Main(argc, argv); }
