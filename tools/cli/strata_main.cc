// The command line `strata`: see tools/cli/arguments/command_line.cc for what can be typed.
#include <glog/logging.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <variant>

#include "proto/runtime/daemon/allocator.h"
#include "proto/runtime/transport/process_tls.h"
#include "tools/cli/arguments/command_line.h"
#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"
#include "tools/cli/base/version.h"
#include "tools/cli/certs/commands.h"
#include "tools/cli/checkpoint/commands.h"
#include "tools/cli/checkpoint/delta_command.h"
#include "tools/cli/cluster/commands.h"
#include "tools/cli/context/commands.h"
#include "tools/cli/data/commands.h"
#include "tools/cli/data/estimate_command.h"
#include "tools/cli/describe/explain_command.h"
#include "tools/cli/describe/help_commands.h"
#include "tools/cli/export/command.h"
#include "tools/cli/import/command.h"
#include "tools/cli/inspect/commands.h"
#include "tools/cli/inspect/get_row_command.h"
#include "tools/cli/inspect/quarantine_command.h"
#include "tools/cli/inspect/top_command.h"
#include "tools/cli/job/clean_command.h"
#include "tools/cli/job/commands.h"
#include "tools/cli/job/train_command.h"
#include "tools/cli/job/validate_command.h"
#include "tools/cli/plot/command.h"

namespace strata {
namespace {

ExitCode RunVersion(const VersionOptions& options) {
  std::printf(options.json ? "{\"version\":\"%s\"}\n" : "strata %s\n", kVersion);
  return kExitOk;
}

struct Runner {
  ExitCode operator()(const VersionOptions& o) const { return RunVersion(o); }
  ExitCode operator()(const TrainOptions& o) const { return RunTrain(o); }
  ExitCode operator()(const CleanOptions& o) const { return RunClean(o); }
  ExitCode operator()(const ValidateOptions& o) const { return RunValidate(o); }
  ExitCode operator()(const UpOptions& o) const { return RunUp(o); }
  ExitCode operator()(const DownOptions& o) const { return RunDown(o); }
  ExitCode operator()(const SubmitOptions& o) const { return RunSubmit(o); }
  ExitCode operator()(const ListOptions& o) const { return RunList(o); }
  ExitCode operator()(const StatusOptions& o) const { return RunStatus(o); }
  ExitCode operator()(const LogsOptions& o) const { return RunLogs(o); }
  ExitCode operator()(const CancelOptions& o) const { return RunCancel(o); }
  ExitCode operator()(const CertsInitOptions& o) const { return RunCertsInit(o); }
  ExitCode operator()(const CertsIssueOptions& o) const { return RunCertsIssue(o); }
  ExitCode operator()(const CertsRenewOptions& o) const { return RunCertsRenew(o); }
  ExitCode operator()(const CertsRolloverOptions& o) const { return RunCertsRollover(o); }
  ExitCode operator()(const CertsRevokeOptions& o) const { return RunCertsRevoke(o); }
  ExitCode operator()(const CertsShowOptions& o) const { return RunCertsShow(o); }
  ExitCode operator()(const ContextAddOptions& o) const { return RunContextAdd(o); }
  ExitCode operator()(const ContextUseOptions& o) const { return RunContextUse(o); }
  ExitCode operator()(const ContextListOptions& o) const { return RunContextList(o); }
  ExitCode operator()(const ContextRemoveOptions& o) const { return RunContextRemove(o); }
  ExitCode operator()(const CheckpointCreateOptions& o) const { return RunCheckpointCreate(o); }
  ExitCode operator()(const CheckpointListOptions& o) const { return RunCheckpointList(o); }
  ExitCode operator()(const CheckpointVerifyOptions& o) const { return RunCheckpointVerify(o); }
  ExitCode operator()(const CheckpointShowOptions& o) const { return RunCheckpointShow(o); }
  ExitCode operator()(const CheckpointDiffOptions& o) const { return RunCheckpointDiff(o); }
  ExitCode operator()(const CheckpointRepairOptions& o) const { return RunCheckpointRepair(o); }
  ExitCode operator()(const CheckpointQuantiseOptions& o) const { return RunCheckpointQuantise(o); }
  ExitCode operator()(const PredictCommandOptions& o) const { return RunPredictCommand(o); }
  ExitCode operator()(const GenerateCriteoOptions& o) const { return RunGenerateCriteo(o); }
  ExitCode operator()(const GenerateMovielensOptions& o) const { return RunGenerateMovielens(o); }
  ExitCode operator()(const ExportCommandOptions& o) const { return RunExport(o); }
  ExitCode operator()(const ImportCommandOptions& o) const { return RunImport(o); }
  ExitCode operator()(const GetRowOptions& o) const { return RunGetRow(o); }
  ExitCode operator()(const DeltaCommandOptions& o) const { return RunDelta(o); }
  ExitCode operator()(const PlotOptions& o) const { return RunPlot(o); }
  ExitCode operator()(const NodesOptions& o) const { return RunNodes(o); }
  ExitCode operator()(const NodesAdoptOptions& o) const { return RunNodesAdopt(o); }
  ExitCode operator()(const NodesPurgeOptions& o) const { return RunNodesPurge(o); }
  ExitCode operator()(const ShardsOptions& o) const { return RunShards(o); }
  ExitCode operator()(const EventsOptions& o) const { return RunEvents(o); }
  ExitCode operator()(const TopOptions& o) const { return RunTop(o); }
  ExitCode operator()(const ExplainOptions& o) const {
    if (o.schema.empty()) return RunExplain(o);
    return RunValidate({.source = {.file = o.schema}, .schema = true, .json = o.json});
  }
  ExitCode operator()(const EstimateOptions& o) const { return RunEstimate(o); }
  ExitCode operator()(const CompletionOptions& o) const { return RunCompletion(o); }
  ExitCode operator()(const ManOptions& o) const { return RunMan(o); }
  ExitCode operator()(const SuperviseOptions& o) const { return RunSupervise(o); }
};

// What was printed has arrived, or the command has not done what it was asked to. A reader that
// left early (`| head -1`) has ended this process by SIGPIPE before.
int Finish(int exit_code) {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && !std::ferror(stdout)) return exit_code;
  std::fprintf(stderr, "strata: cannot write to standard output: %s\n",
               std::strerror(flushed || error == 0 ? EIO : error));
  return exit_code == kExitOk ? kExitFailed : exit_code;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  strata::AllowTls13Alone();
  // gRPC logs each try of a connection; commands say once why there is none. Users may ask for it.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  strata::TuneAllocator();
  // Libraries of ours log what they do; here only what went wrong is shown.
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging("strata");
  const strata::ParsedCommandLine parsed = strata::ParseCommandLine(argc, argv);
  if (parsed.command.has_value()) {
    return strata::Finish(std::visit(strata::Runner{}, *parsed.command));
  }
  std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
  return strata::Finish(parsed.exit_code);
}
