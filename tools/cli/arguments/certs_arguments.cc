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

void AddWho(CLI::App* command, std::string& role, std::string& name) {
  command->add_option("role", role, "what the certificate lets its holder be")
      ->required()
      ->check(CLI::IsMember({"scheduler", "server", "worker", "operator", "reader"}));
  command->add_option("name", name, "name of the process, or of the person")
      ->required()
      ->type_name("NAME");
}

void AddOrder(CLI::App* command, CertsOrder& order) {
  AddWho(command, order.role, order.name);
  AddFolder(command, order.dir);
  AddDays(command, order.days, "how long it is valid (default 90)");
  AddJson(command, order.json);
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
  AddWho(revoke, o.role, o.name);
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
  auto [issue, issued] = commands.Add<CertsIssueOptions>(
      *group, "issue", "Make the certificate of a process or a person");
  AddOrder(issue, issued.order);
  auto [renew, renewed] = commands.Add<CertsRenewOptions>(
      *group, "renew", "Make a new certificate, and lead the link to it in one step");
  AddOrder(renew, renewed.order);
  AddRevoke(*group, commands);
  AddShow(*group, commands);
}

}  // namespace strata
