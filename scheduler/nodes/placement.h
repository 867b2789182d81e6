// Which nodes a job gets, and what of it each has. Pure functions.
#ifndef STRATA_SCHEDULER_NODES_PLACEMENT_H_
#define STRATA_SCHEDULER_NODES_PLACEMENT_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job/memory_need.h"
#include "proto/strata/control.pb.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/nodes/room.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// A live node that could be taken.
struct Candidate {
  std::string name;
  uint32_t jobs = 0;  // unfinished jobs that it has already
  uint32_t cores = 0;
  // Of workers: of what it would compute a job with.
  std::string numerics_id;
  std::string device_class;  // "cpu", or what tells GPUs of one make from others
  bool able = true;          // false: it lacks the GPU that the job asks for, and is never taken
  ServerRoom room = {};      // of servers: without what the job itself has there
  std::string zone = "";     // of servers
  uint32_t copies = 0;       // of this job's shards that a server has
};

// Where a server's copies are apart from those of others: its zone or, where it names none, itself.
std::string ZoneOf(const NodeRecord& server);

// What a worker would compute a job of this spec with: fills the candidate's numerics id and class.
// False, and so `able`: the job names a GPU that the worker has not, or a precision that only a GPU
// computes in, and the worker has none.
bool ComputesWith(const WorkerSpec& spec, const NodeRecord& worker, Candidate& candidate);

// Whether a server can keep the GPU tier of a job of this spec, resolved; true where it has none.
bool HoldsGpuTier(const StorageSpec& spec, const NodeRecord& server);

// FAILED_PRECONDITION: nodes of a role are there, and none that the scheduler knows of has the GPU
// that the job asks of it; says what to do. Silent nodes count: they may come back.
absl::Status CheckGpus(const JobSpec& spec, const Membership& members);

// INVALID_ARGUMENT: more workers than lanes, or more servers than partitions; names both.
absl::Status CheckReplicas(const JobSpec& spec);

// The `count` servers with the fewest jobs of those that have room for `need`, then by name;
// ordered by name. UNAVAILABLE says how many there are, and how many of them lack the job's GPU.
// RESOURCE_EXHAUSTED: there are enough, but too few have the room; it says what the job needs, what
// each has free, and who holds it.
absl::StatusOr<std::vector<std::string>> ChooseServers(std::vector<Candidate> live, uint32_t count,
                                                       const ServerNeed& need = {});

// For the shards of each of `heads` the servers of so many copies, that head first. Each further
// copy is on a server of another zone that has room for all its copies: on the one with the fewest,
// then on the next by name after the head. FAILED_PRECONDITION: there are fewer zones than copies;
// names them. RESOURCE_EXHAUSTED: no server of another zone has the room.
absl::StatusOr<std::vector<std::vector<std::string>>> ChooseCopies(
    std::vector<Candidate> live, const std::vector<std::string>& heads, uint32_t replicas,
    const ServerNeed& need);

// A server for one more copy, in none of `zones`, by the same rules; "": there is none. `after`:
// name of the head.
std::string ChooseCopy(const std::vector<Candidate>& live, const std::set<std::string>& zones,
                       const std::string& after, const ServerNeed& need);

// `count` workers without a job, by name. Where `same_numerics`, all have one numerics id: `wanted`
// if it is not empty, else the first (by name) of which there are enough. UNAVAILABLE says how many
// there are, how many lack the job's GPU, and of which ids the others are. FAILED_PRECONDITION:
// there are enough, but only of several device classes together; it names two of them and their
// classes.
absl::StatusOr<std::vector<std::string>> ChooseWorkers(std::vector<Candidate> live, uint32_t count,
                                                       bool same_numerics,
                                                       const std::string& wanted);

// Partitions in even shards over the servers (ShardMap::Even). `cores`: the most that one of the
// servers has; shards per server = spec.storage.shardsPerServer, else max(4, cores), at most
// partitions / servers.
std::vector<ShardAssignment> PlaceShards(const JobSpec& spec, uint32_t servers, uint32_t cores);

// Lanes of each worker slot. Slot i's home is the i-th even run of lanes; the lanes of a vacant
// slot are dealt in runs to the occupied ones, so that nobody else's lanes move. Each ascending.
// All empty when no slot is occupied. REQUIRES: 1 <= occupied.size() <= lanes.
std::vector<std::vector<uint32_t>> AssignLanes(uint32_t lanes, const std::vector<bool>& occupied);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODES_PLACEMENT_H_
