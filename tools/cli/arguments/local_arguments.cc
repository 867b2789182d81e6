#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddTrain(CLI::App& app, CommandSet& commands) {
  auto [train, o] =
      commands.Add<TrainOptions>(app, "train", "Train a job in this process, without a cluster");
  AddSource(train, o.source);
  AddFresh(train, o.resume, o.overwrite);
  AddDataRoots(train, o.data_roots);
  AddJson(train, o.json);
}

void AddClean(CLI::App& app, CommandSet& commands) {
  auto [clean, o] = commands.Add<CleanOptions>(
      app, "clean", "Remove what runs of `strata train` left that were killed");
  clean->add_option("folders", o.folders, "spec.storage.directory of the runs, or $TMPDIR")
      ->required()
      ->type_name("DIR");
  clean->add_flag("--all", o.all,
                  "also jobs of clusters whose servers do not run now: they cannot go on then");
  clean->add_flag("--dry-run", o.dry_run, "only say what would be removed");
  AddJson(clean, o.json);
}

void AddValidate(CLI::App& app, CommandSet& commands) {
  auto [validate, o] = commands.Add<ValidateOptions>(
      app, "validate", "Check a job file and print it with every default");
  AddSource(validate, o.source);
  validate->add_flag("--schema", o.schema,
                     "print what the model is made of (tables, tensors, fields, labels) alone");
  validate
      ->add_option("--form", o.form,
                   "say what columns are by spec.fields, or by spec.data.columns; default: as the "
                   "job file")
      ->check(CLI::IsMember({"fields", "columns"}));
  AddJson(validate, o.json);
}

void AddVersion(CLI::App& app, CommandSet& commands) {
  auto [version, o] = commands.Add<VersionOptions>(app, "version", "Print the version");
  AddJson(version, o.json);
}

void AddSupervise(CLI::App& app, CommandSet& commands) {
  auto [supervise, o] = commands.Add<SuperviseOptions>(app, "supervise", "");
  supervise->group("");  // what `up` starts in the background
  supervise->add_option("--dir", o.dir)->required();
}

}  // namespace

void AddLocalCommands(CLI::App& app, CommandSet& commands) {
  AddTrain(app, commands);
  AddClean(app, commands);
  AddValidate(app, commands);
  AddVersion(app, commands);
  AddSupervise(app, commands);
}

}  // namespace strata
