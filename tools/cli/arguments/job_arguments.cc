#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddSubmit(CLI::App& app, CommandSet& commands) {
  auto [submit, o] = commands.Add<SubmitOptions>(app, "submit", "Hand a job to a cluster");
  AddSource(submit, o.source);
  AddCluster(submit, o.cluster);
  submit->add_flag("-w,--wait", o.wait, "show progress and wait for the end");
  AddTimeout(submit, o.timeout_seconds, "with --wait: stop waiting after this long");
  AddFresh(submit, o.resume, o.overwrite);
  AddJson(submit, o.json);
}

void AddList(CLI::App& app, CommandSet& commands) {
  auto [list, o] = commands.Add<ListOptions>(app, "list", "List the jobs of a cluster");
  AddCluster(list, o.cluster);
  AddJson(list, o.json);
}

void AddStatus(CLI::App& app, CommandSet& commands) {
  auto [status, o] =
      commands.Add<StatusOptions>(app, "status", "Show a job, or the cluster and its jobs");
  status->add_option("job", o.job, "number or name")->type_name("JOB");
  AddCluster(status, o.cluster);
  status->add_flag("-w,--watch", o.watch, "go on until the job is at its end");
  AddJson(status, o.json);
}

void AddCancel(CLI::App& app, CommandSet& commands) {
  auto [cancel, o] = commands.Add<CancelOptions>(app, "cancel", "Stop a job");
  cancel->add_option("job", o.job, "number or name")->required()->type_name("JOB");
  AddCluster(cancel, o.cluster);
  AddJson(cancel, o.json);
}

}  // namespace

void AddJobCommands(CLI::App& app, CommandSet& commands) {
  AddSubmit(app, commands);
  AddList(app, commands);
  AddStatus(app, commands);
  AddCancel(app, commands);
}

}  // namespace strata
