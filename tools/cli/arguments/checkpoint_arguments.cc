#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddCheckpointCreate(CLI::App& group, CommandSet& commands) {
  auto [create, o] = commands.Add<CheckpointCreateOptions>(
      group, "create", "Make a checkpoint of a running job now");
  create->add_option("job", o.job, "number or name")->required()->type_name("JOB");
  AddCluster(create, o.cluster);
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
  AddCluster(list, o.cluster);
  AddJson(list, o.json);
}

void AddCheckpointVerify(CLI::App& group, CommandSet& commands) {
  auto [verify, o] = commands.Add<CheckpointVerifyOptions>(group, "verify",
                                                           "Read a checkpoint whole and check it");
  verify
      ->add_option("directory", o.directory,
                   "a checkpoint's folder, one that holds checkpoints (then the newest), or a "
                   "quantised copy")
      ->required()
      ->type_name("DIR");
  AddJson(verify, o.json);
}

void AddCheckpointShow(CLI::App& group, CommandSet& commands) {
  auto [show, o] = commands.Add<CheckpointShowOptions>(
      group, "show", "Say what a checkpoint is of: its step, and its model by name");
  show->add_option("directory", o.directory,
                   "a checkpoint's folder, or one that holds checkpoints (then the newest)")
      ->required()
      ->type_name("DIR");
  AddJson(show, o.json);
}

void AddCheckpointDiff(CLI::App& group, CommandSet& commands) {
  auto [diff, o] = commands.Add<CheckpointDiffOptions>(
      group, "diff", "Compare two checkpoints: their models by name, then their rows");
  diff->add_option("a", o.a, "a checkpoint's folder, or one that holds checkpoints (the newest)")
      ->required()
      ->type_name("A");
  diff->add_option("b", o.b, "the other")->required()->type_name("B");
  diff->add_option("--top", o.top, "rows to show of each table (default 10)")
      ->type_name("N")
      ->check(NotNegative());
  AddJson(diff, o.json);
}

void AddCheckpointRepair(CLI::App& group, CommandSet& commands) {
  auto [repair, o] = commands.Add<CheckpointRepairOptions>(
      group, "repair", "Go back to the newest whole checkpoint: set damaged newer ones aside");
  repair->add_option("directory", o.directory, "spec.checkpoint.directory of a job")
      ->required()
      ->type_name("DIR");
  repair->add_flag("--dry-run", o.dry_run, "only say what is damaged");
  AddJson(repair, o.json);
}

void AddCheckpointQuantise(CLI::App& group, CommandSet& commands) {
  auto [quantise, o] = commands.Add<CheckpointQuantiseOptions>(
      group, "quantise", "Write a checkpoint's weights as fp16 or int8, for serving");
  quantise
      ->add_option("checkpoint", o.checkpoint,
                   "a checkpoint's folder, or one that holds checkpoints (then the newest)")
      ->required()
      ->type_name("DIR");
  quantise->add_option("output", o.output, "a folder that is new or empty")
      ->required()
      ->type_name("OUTPUT")
      ->check(NamedFolder());
  quantise->add_option("--type", o.type, "fp16, or int8 with a scale per row (default fp16)")
      ->check(CLI::IsMember({"fp16", "int8"}))
      ->type_name("TYPE");
  AddJson(quantise, o.json);
}

}  // namespace

void AddCheckpointCommands(CLI::App& app, CommandSet& commands) {
  CLI::App* group = app.add_subcommand(
      "checkpoint", "Make, list, verify, show, compare, repair and quantise checkpoints");
  group->require_subcommand(1);
  AddCheckpointCreate(*group, commands);
  AddCheckpointList(*group, commands);
  AddCheckpointVerify(*group, commands);
  AddCheckpointShow(*group, commands);
  AddCheckpointDiff(*group, commands);
  AddCheckpointRepair(*group, commands);
  AddCheckpointQuantise(*group, commands);
}

}  // namespace strata
