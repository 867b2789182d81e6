#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

constexpr char kQuarantinedJob[] = "UID (or its beginning), number or name of a kept job";

void AddNodesAdopt(CLI::App& nodes, CommandSet& commands) {
  auto [adopt, o] = commands.Add<NodesAdoptOptions>(
      nodes, "adopt", "Have a job go on that servers keep and the scheduler does not know");
  adopt->add_option("job", o.job, kQuarantinedJob)->required()->type_name("JOB");
  AddCluster(adopt, o.cluster);
  AddJson(adopt, o.json);
}

void AddNodesPurge(CLI::App& nodes, CommandSet& commands) {
  auto [purge, o] = commands.Add<NodesPurgeOptions>(
      nodes, "purge", "Remove a server's copy of a job that the scheduler does not know");
  purge->add_option("node", o.node, "the server that keeps it")->required()->type_name("NODE");
  purge->add_option("job", o.job, kQuarantinedJob)->required()->type_name("JOB");
  AddCluster(purge, o.cluster);
  AddJson(purge, o.json);
}

void AddNodes(CLI::App& app, CommandSet& commands) {
  auto [nodes, o] = commands.Add<NodesOptions>(app, "nodes", "Show the servers and workers");
  nodes->add_flag("--quarantined", o.quarantined,
                  "instead: the copies that servers keep of jobs that the scheduler does not know");
  AddCluster(nodes, o.cluster);
  AddJson(nodes, o.json);
  AddNodesAdopt(*nodes, commands);
  AddNodesPurge(*nodes, commands);
}

void AddShards(CLI::App& app, CommandSet& commands) {
  auto [shards, o] =
      commands.Add<ShardsOptions>(app, "shards", "Show where a job's shards are and how full");
  shards->add_option("job", o.job, "number or name")->required()->type_name("JOB");
  AddCluster(shards, o.cluster);
  AddJson(shards, o.json);
}

void AddEvents(CLI::App& app, CommandSet& commands) {
  auto [events, o] = commands.Add<EventsOptions>(
      app, "events", "Show what happened, oldest first (the newest 4096 are kept)");
  events->add_option("job", o.job, "number or name (default: all jobs and nodes)")
      ->type_name("JOB");
  events->add_flag("-f,--follow", o.follow, "go on with what comes");
  events
      ->add_option("--since", o.since,
                   "only from then on: how long ago (90s, 15m, 2h) or a time "
                   "(2026-01-31T12:00:00Z)")
      ->type_name("TIME");
  AddCluster(events, o.cluster);
  events->add_flag("--json", o.json, "print a line of JSON on stdout for each");
}

void AddTop(CLI::App& app, CommandSet& commands) {
  auto [top, o] = commands.Add<TopOptions>(
      app, "top", "Show what each process does now: keys and bytes a second, hits, queues, clocks");
  top->add_option("--interval", o.interval_seconds, "seconds between two looks")
      ->capture_default_str()
      ->type_name("SECONDS")
      ->check(Positive());
  top->add_flag("--once", o.once, "look twice, print once (the default away from a terminal)");
  AddCluster(top, o.cluster);
  top->add_flag("--json", o.json, "print a line of JSON on stdout for each look");
}

}  // namespace

void AddInspectCommands(CLI::App& app, CommandSet& commands) {
  AddNodes(app, commands);
  AddShards(app, commands);
  AddEvents(app, commands);
  AddTop(app, commands);
}

}  // namespace strata
