// What jobs may take of each server, who has reserved what of it, and whether one more fits. Pure
// functions; nothing of it is recorded: it follows from what nodes report and from the records of
// jobs.
#ifndef STRATA_SCHEDULER_NODES_ROOM_H_
#define STRATA_SCHEDULER_NODES_ROOM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job/memory_need.h"
#include "proto/strata/job.pb.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// What one job keeps of a server.
struct Holding {
  std::string job;  // its name
  MemoryNeed bytes;
  // Its memory is an estimate with this many rows of features; 0: a limit is.
  uint64_t estimated_rows = 0;
};

// The fields of MemoryNeed, in that order.
inline constexpr size_t kSharedResources = 3;

// What a server's memory, disk or GPU memory is a part of.
struct SharedPart {
  std::string of;      // the machine, the file system, the GPU; empty: it is the server's own
  bool given = false;  // what it has of that was given to it, and stays with it
};

struct ServerRoom {
  // What jobs may take of it. 0, in each field: not known, and so not counted.
  MemoryNeed whole;
  std::vector<Holding> held;
  std::array<SharedPart, kSharedResources> shared;
  // What jobs have on servers beside it beyond what those have by now, taken from what it has.
  MemoryNeed taken_beside;
};

// By server.
using Rooms = std::map<std::string, ServerRoom, std::less<>>;

// The rooms of all servers, nothing of them held. What a server was not given (memory_given,
// disk_given, gpu_given) it has of its machine, of its file system (disk_id) and of its GPU
// (device): an equal share of what is left, among the servers that name the same and are alive or
// hold jobs
// (`hosts`). One that names none is alone on its own. A file system has what is free there, once,
// and what jobs of all those servers have there.
Rooms WholeRooms(const Membership& members, const std::function<bool(absl::string_view)>& hosts);

// To be called when all have reserved: a server that joins a machine makes the shares of those
// beside it less, also below what jobs hold of them. What is held beyond a share, of memory, of a
// disk and of a GPU, is taken from what is free on the other servers there, in proportion to that.
void TakeBeside(Rooms& rooms);

// What a job keeps of a server that has `whole`: all that it is likely to need, but no more than
// the server has in all, unless its file asks for more. So what is guessed never keeps a job from a
// server that it has alone.
MemoryNeed ReservedOn(const ServerNeed& need, const MemoryNeed& whole);

// Of so many of them on one server.
ServerNeed TimesOf(ServerNeed need, uint32_t times);

// What is reserved there.
MemoryNeed HeldOf(const ServerRoom& room);

// Whether ReservedOn fits beside what is held, there and beside it.
bool Fits(const ServerNeed& need, const ServerRoom& room);
// Whether it would if nothing were held.
bool EverFits(const ServerNeed& need, const MemoryNeed& whole);

// "s0 has 1.0 GiB of memory free of 4.0 GiB (held: job day 3.0 GiB)": of what the job needs and
// the server lacks.
std::string DescribeRoom(absl::string_view server, const ServerNeed& need, const ServerRoom& room);

// FAILED_PRECONDITION: as many servers are there as the job wants, but fewer of all that the
// scheduler knows of could ever take what the job's file asks for, even alone. The text has the
// figures. Silent servers count: they may come back.
absl::Status CheckRoom(const JobSpec& spec, const Membership& members, const Rooms& rooms);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODES_ROOM_H_
