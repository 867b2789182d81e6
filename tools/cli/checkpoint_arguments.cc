#include "tools/cli/argument_groups.h"
#include "tools/cli/common_arguments.h"

namespace strata {
namespace {

void AddCheckpointCreate(CLI::App& group, CommandSet& commands) {
  auto [create, o] = commands.Add<CheckpointCreateOptions>(
      group, "create", "Make a checkpoint of a running job now");
  create->add_option("job", o.job, "number or name")->required()->type_name("JOB");
  AddScheduler(create, o.scheduler);
  AddTimeout(create, o.timeout_seconds, "how long to wait for it (default 600)");
  AddJson(create, o.json);
}

void AddCheckpointList(CLI::App& group, CommandSet& commands) {
  auto [list, o] = commands.Add<CheckpointListOptions>(group, "list", "List complete checkpoints");
  CLI::Option* dir =
      list->add_option("directory", o.directory, "spec.checkpoint.directory of a job")
          ->type_name("DIR");
  list->add_option("--job", o.job, "instead: number or name of a job")
      ->type_name("JOB")
      ->excludes(dir);
  AddScheduler(list, o.scheduler);
  AddJson(list, o.json);
}

void AddCheckpointVerify(CLI::App& group, CommandSet& commands) {
  auto [verify, o] = commands.Add<CheckpointVerifyOptions>(group, "verify",
                                                           "Read a checkpoint whole and check it");
  verify
      ->add_option("directory", o.directory,
                   "a checkpoint's folder, or one that holds checkpoints (then the newest)")
      ->required()
      ->type_name("DIR");
  AddJson(verify, o.json);
}

}  // namespace

void AddCheckpointCommands(CLI::App& app, CommandSet& commands) {
  CLI::App* group = app.add_subcommand("checkpoint", "Make, list and verify checkpoints");
  group->require_subcommand(1);
  AddCheckpointCreate(*group, commands);
  AddCheckpointList(*group, commands);
  AddCheckpointVerify(*group, commands);
}

}  // namespace strata
