#include <string>

#include "proto/core/zone.h"
#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddUp(CLI::App& app, CommandSet& commands) {
  auto [up, o] =
      commands.Add<UpOptions>(app, "up", "Start a cluster of real processes on this machine");
  up->add_option("--servers", o.servers, "server processes")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  up->add_option("--workers", o.workers, "worker processes")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  up->add_option("--devices", o.devices,
                 "GPUs by UUID (or its beginning), or none, one for each server in order")
      ->delimiter(',')
      ->type_name("UUID,...");
  up->add_option("--worker-devices", o.worker_devices,
                 "GPUs by UUID (or its beginning), or none, one for each worker in order (default: "
                 "the one GPU that a worker sees, if it sees exactly one)")
      ->delimiter(',')
      ->type_name("UUID,...");
  up->add_option("--zones", o.zones,
                 "zones, one for each server in order: copies of a shard lie in different ones "
                 "(default: each server is a zone)")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->check([](const std::string& zone) { return std::string(CheckZone(zone).message()); });
  up->add_option("--dir", o.dir, "where everything is kept")
      ->capture_default_str()
      ->type_name("DIR");
  AddDataRoots(up, o.data_roots);
  up->add_option("--bin-dir", o.bin_dir, "where the daemons are (default: beside strata)")
      ->type_name("DIR");
  up->add_flag("--insecure", o.insecure,
               "without TLS: nobody is asked who he is (default: certificates in DIR/certs)");
  AddTimeout(up, o.timeout_seconds, "how long the processes have to register (default 60)");
  AddJson(up, o.json);
}

void AddDown(CLI::App& app, CommandSet& commands) {
  auto [down, o] = commands.Add<DownOptions>(app, "down", "Stop the cluster that 'up' started");
  down->add_option("--dir", o.dir, "its folder (default: that of the last 'up')")->type_name("DIR");
  AddTimeout(down, o.timeout_seconds, "how long the processes have to end (default 60)");
  AddJson(down, o.json);
}

void AddLogs(CLI::App& app, CommandSet& commands) {
  auto [logs, o] = commands.Add<LogsOptions>(app, "logs", "Show what the processes of 'up' say");
  logs->add_option("names", o.names, "processes, as in server-0 (default: all)")
      ->type_name("PROCESS");
  logs->add_flag("-f,--follow", o.follow, "go on with what comes");
  logs->add_option("-n,--lines", o.lines, "last lines of each")
      ->capture_default_str()
      ->check(NotNegative());
  logs->add_option("--dir", o.dir, "folder of the cluster (default: that of the last 'up')")
      ->type_name("DIR");
  AddJson(logs, o.json);
}

}  // namespace

void AddClusterCommands(CLI::App& app, CommandSet& commands) {
  AddUp(app, commands);
  AddDown(app, commands);
  AddLogs(app, commands);
}

}  // namespace strata
