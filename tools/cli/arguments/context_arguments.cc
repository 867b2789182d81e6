#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddName(CLI::App* command, std::string& name, const char* help) {
  command->add_option("name", name, help)->required()->type_name("NAME");
}

void AddContextAdd(CLI::App& group, CommandSet& commands) {
  auto [add, o] = commands.Add<ContextAddOptions>(
      group, "add", "Give a cluster a name; the first one becomes the current one");
  AddName(add, o.name, "what to call the cluster: letters, digits, '.', '_' and '-'");
  add->add_option("--scheduler", o.scheduler, "the cluster's scheduler")
      ->required()
      ->type_name("HOST:PORT");
  AddCredentials(add, o.certs, o.insecure);
  AddJson(add, o.json);
}

void AddContextUse(CLI::App& group, CommandSet& commands) {
  auto [use, o] = commands.Add<ContextUseOptions>(
      group, "use", "Have commands talk to a cluster where they are told no other");
  AddName(use, o.name, "one of `strata context list`");
  AddJson(use, o.json);
}

void AddContextList(CLI::App& group, CommandSet& commands) {
  auto [list, o] = commands.Add<ContextListOptions>(
      group, "list", "List contexts: which is the current one, and how long certificates last");
  AddJson(list, o.json);
}

void AddContextRemove(CLI::App& group, CommandSet& commands) {
  auto [remove, o] = commands.Add<ContextRemoveOptions>(
      group, "remove", "Forget a cluster's name; certificates stay where they are");
  AddName(remove, o.name, "one of `strata context list`");
  AddJson(remove, o.json);
}

}  // namespace

void AddContextCommands(CLI::App& app, CommandSet& commands) {
  CLI::App* group = app.add_subcommand(
      "context", "Name clusters, with address and certificate, and choose one of them");
  group->require_subcommand(1);
  AddContextAdd(*group, commands);
  AddContextUse(*group, commands);
  AddContextList(*group, commands);
  AddContextRemove(*group, commands);
}

}  // namespace strata
