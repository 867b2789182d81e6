#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddExplain(CLI::App& app, CommandSet& commands) {
  auto [explain, o] =
      commands.Add<ExplainOptions>(app, "explain", "Say what a job file may hold, field by field");
  explain
      ->add_option("path", o.path,
                   "a field, as in spec.training or spec.training.batchSize (default: the top)")
      ->type_name("FIELD");
  explain
      ->add_option("-f,--file,--schema", o.schema,
                   "instead: what the model of this job file is made of (tables, tensors, fields, "
                   "labels)")
      ->type_name("JOB.yaml");
  explain->add_flag("-r,--recursive", o.recursive, "with the fields of the fields");
  AddJson(explain, o.json);
}

void AddEstimate(CLI::App& app, CommandSet& commands) {
  auto [estimate, o] = commands.Add<EstimateOptions>(
      app, "estimate", "Say how much memory a job will take, by process and part");
  AddSource(estimate, o.source);
  estimate
      ->add_option("--rows", o.rows,
                   "features that will have a row (default: the distinct ones of the training "
                   "data, counted to about 1 %)")
      ->type_name("N")
      ->check(Positive());
  AddJson(estimate, o.json);
}

void AddCompletion(CLI::App& app, CommandSet& commands) {
  auto [completion, o] = commands.Add<CompletionOptions>(
      app, "completion", "Print the completion script of a shell (tools/install puts it in place)");
  completion->add_option("shell", o.shell, "whose")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void AddMan(CLI::App& app, CommandSet& commands) {
  auto [man, o] = commands.Add<ManOptions>(
      app, "man", "Write the manual pages (tools/install puts them in place)");
  man->add_option("-o,--output", o.output, "folder for them, made if missing")
      ->required()
      ->type_name("DIR")
      ->check(NamedFolder());
}

}  // namespace

void AddHelpCommands(CLI::App& app, CommandSet& commands) {
  AddExplain(app, commands);
  AddEstimate(app, commands);
  AddCompletion(app, commands);
  AddMan(app, commands);
}

}  // namespace strata
