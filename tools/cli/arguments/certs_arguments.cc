#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddFolder(CLI::App* command, std::string& dir) {
  command->add_option("--dir", dir, "folder of the certificates (default ./strata-certs)")
      ->type_name("DIR")
      ->check(NamedFolder());
}

void AddDays(CLI::App* command, int& days, const char* help) {
  command->add_option("--days", days, help)->type_name("N")->check(Positive());
}

void AddWho(CLI::App* command, std::string& role, std::string& name, bool required) {
  command->add_option("role", role, "what the certificate lets its holder be")
      ->required(required)
      ->check(CLI::IsMember({"scheduler", "server", "worker", "operator", "reader"}));
  command->add_option("name", name, "name of the process, or of the person")
      ->required(required)
      ->type_name("NAME");
}

void AddRest(CLI::App* command, CertsOrder& order) {
  AddFolder(command, order.dir);
  AddDays(command, order.days, "how long it is valid (default 90)");
  AddJson(command, order.json);
}

void AddIssue(CLI::App& group, CommandSet& commands) {
  auto [issue, o] = commands.Add<CertsIssueOptions>(
      group, "issue", "Make the certificate of a process or a person");
  AddWho(issue, o.order.role, o.order.name, /*required=*/true);
  AddRest(issue, o.order);
}

void AddRenew(CLI::App& group, CommandSet& commands) {
  auto [renew, o] = commands.Add<CertsRenewOptions>(
      group, "renew", "Make a new certificate, and lead the link to it in one step");
  AddWho(renew, o.order.role, o.order.name, /*required=*/false);
  renew->add_flag("--all", o.all,
                  "of everybody who has one in the folder, but of whom it is revoked");
  AddRest(renew, o.order);
}

void AddRollover(CLI::App& group, CommandSet& commands) {
  auto [rollover, o] = commands.Add<CertsRolloverOptions>(
      group, "rollover", "Change the authority (CA) of a cluster that is up, in three steps");
  rollover
      ->add_option("step", o.step,
                   "begin: make the next CA; switch: have it sign; end: drop the old one. After "
                   "each of them: strata certs renew --all")
      ->required()
      ->check(CLI::IsMember({"begin", "switch", "end"}));
  AddFolder(rollover, o.dir);
  AddDays(rollover, o.days, "how long the next CA is valid (default 3650)");
  AddJson(rollover, o.json);
}

void AddInit(CLI::App& group, CommandSet& commands) {
  auto [init, o] = commands.Add<CertsInitOptions>(
      group, "init", "Make the authority (CA) of a cluster, which signs its certificates");
  AddFolder(init, o.dir);
  init->add_option("--cluster", o.cluster, "id of a cluster that exists (default: a new id)")
      ->type_name("ID");
  AddDays(init, o.days, "how long it is valid (default 3650)");
  AddJson(init, o.json);
}

void AddRevoke(CLI::App& group, CommandSet& commands) {
  auto [revoke, o] = commands.Add<CertsRevokeOptions>(
      group, "revoke", "Put certificates on the list of those that count no more");
  AddWho(revoke, o.role, o.name, /*required=*/true);
  revoke
      ->add_option("--serial", o.serial,
                   "this one alone (default: all of that name that have not expired)")
      ->type_name("SERIAL");
  AddFolder(revoke, o.dir);
  AddJson(revoke, o.json);
}

void AddShow(CLI::App& group, CommandSet& commands) {
  auto [show, o] = commands.Add<CertsShowOptions>(
      group, "show", "List certificates: whose, until when, and which are revoked");
  AddFolder(show, o.dir);
  AddJson(show, o.json);
}

}  // namespace

void AddCertsCommands(CLI::App& app, CommandSet& commands) {
  CLI::App* group =
      app.add_subcommand("certs", "Make, renew, revoke and list the certificates of a cluster");
  group->require_subcommand(1);
  AddInit(*group, commands);
  AddIssue(*group, commands);
  AddRenew(*group, commands);
  AddRollover(*group, commands);
  AddRevoke(*group, commands);
  AddShow(*group, commands);
}

}  // namespace strata
