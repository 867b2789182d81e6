// Servers and workers as a ClusterState sees them, simulated in one thread: they report, act on
// their directives, lose messages, die and come back. What they "train" is only who did what:
// enough to see a task lost, a step skipped or a checkpoint that does not hold what its manifest
// says.
#ifndef STRATA_TESTS_SCHEDULER_SIM_NODES_H_
#define STRATA_TESTS_SCHEDULER_SIM_NODES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "server/protocol/cut_barrier.h"
#include "server/protocol/lane_sessions.h"
#include "server/protocol/window_ledger.h"

namespace strata::scheduler {

using Window = std::pair<uint64_t, uint64_t>;  // task, window

// What a server holds of a job: bsp a clock; async how often each window took effect, and what the
// real server decides that by.
struct SimShard {
  uint64_t generation = 0;
  uint64_t clock = 0;
  std::map<Window, int> applied;
  server::WindowLedger ledger;

  bool EachOnce() const;
};

// Checkpoint folders: what each server put there. A folder is a checkpoint when `manifest` says so.
struct SimFolder {
  std::map<std::string, SimShard> files;  // by server
  uint64_t cut = 0;                       // of the manifest
  bool complete = false;
  bool damaged = false;
};
using SimDisk = std::map<std::string, SimFolder>;

struct SimJob {
  uint32_t lanes = 1;
  uint64_t steps = 0;             // bsp
  uint64_t windows_per_task = 0;  // async; 0: bsp
  bool memory = false;            // durability
  // Async: every so manyth line of the input is bad; 0: none. A window is a line.
  uint64_t bad_every = 0;
  // Servers leave something in the folders of cuts that ends as a file of a checkpoint does: a real
  // scheduler looks for it.
  bool real_files = false;

  // Of a task of `tasks`, in its windows below `end`.
  TaskCounts CountLines(uint64_t task, uint64_t end, uint64_t tasks) const;
};

// Who pushes.
struct SimSender {
  uint64_t generation = 0;
  uint64_t session = 0;
};

class SimServer {
 public:
  SimServer(std::string name, SimJob job, SimDisk* disk)
      : name_(std::move(name)), job_(job), disk_(disk) {}

  bool alive() const { return alive_; }
  void Start(uint64_t incarnation);
  void Kill();
  // Its jobs are opened anew in the same process, of what is logged.
  void Reopen();
  // The machine is lost: what is on its disk, too.
  void Wipe() { logged_.clear(); }
  // Its folder is on another file system now; "": nobody knows on which.
  void MoveTo(const std::string& disk_id) { disk_id_ = disk_id; }
  // It has a container of its own now, on the same host.
  void LimitBy(const std::string& group) { machine_id_ = group; }
  // From now on it finds damage in whatever checkpoint it reads, this often.
  void ReadBadly(int times) { bad_reads_ = times; }
  // From now on it fails whatever cut it is told to take, before lanes have marked it, this often.
  void FailCuts(int times, absl::StatusCode why = absl::StatusCode::kUnavailable) {
    failing_cuts_ = times;
    failing_code_ = why;
  }
  bool fails_cuts() const { return failing_cuts_ > 0; }
  // Lanes have pushed for too long to a cut that others do not mark.
  void LosePatience();

  NodeReport Report() const;
  void Act(const NodeDirective& directive);
  void Fenced() { session_ = 0; }

  // Data plane; false: refused or not committed, ask again later.
  bool Push(uint64_t job, const SimSender& by, uint64_t step, uint32_t lane);
  bool Apply(uint64_t job, const SimSender& by, Window window, uint64_t cut);
  bool Mark(uint64_t job, const SimSender& by, uint64_t cut, LanePosition position);
  // Whether what the session pushes now would be taken.
  bool Takes(uint64_t job, const SimSender& by) const;
  const SimShard* Find(uint64_t job, uint64_t generation) const;
  // Marks and pushes that it refused, since no such cut can exist as far as it was told.
  uint64_t impossible_cuts() const { return impossible_cuts_; }
  const std::string& name() const { return name_; }
  uint64_t session() const { return session_; }

 private:
  struct Open {
    SimShard shard;
    std::set<uint32_t> pushed;  // lanes, of step clock + 1
    ServerJobDirective told;
    ServerJobReport::State state = ServerJobReport::OPENING;
    std::string message;
    uint32_t reopened = 0;
    std::map<uint64_t, CutReport> cuts;
    std::optional<server::CutBarrier> barrier;  // async
    server::LaneSessions sessions;
  };
  void OpenShard(const ServerJobDirective& d);
  bool MayExist(const Open& open, uint64_t cut);
  void TakeCuts(Open& open);
  void TakeAsync(Open& open, const CutDirective& cut);
  void Finish(Open& open, const CutDirective& cut);
  void Keep(uint64_t job, const Open& open);

  std::string name_, machine_id_ = "host", disk_id_ = "host/1";
  SimJob job_;
  SimDisk* disk_;
  bool alive_ = false;
  int bad_reads_ = 0, failing_cuts_ = 0;
  absl::StatusCode failing_code_ = absl::StatusCode::kUnavailable;
  uint64_t incarnation_ = 0, session_ = 0, seen_ = 0, impossible_cuts_ = 0;
  std::map<uint64_t, Open> open_;
  std::map<uint64_t, SimShard> logged_;   // survives a kill
  std::map<uint64_t, std::string> uids_;  // as well: by job
  std::map<uint64_t, KeptJob> notes_;     // as well
  std::set<uint64_t> quarantined_;        // as well
};

class SimWorker {
 public:
  SimWorker(std::string name, SimJob job, std::map<std::string, SimServer>* servers)
      : name_(std::move(name)), job_(job), servers_(servers) {}

  bool alive() const { return alive_; }
  void Start(uint64_t incarnation);
  void Kill() { alive_ = false; }

  NodeReport Report() const;
  void Act(const NodeDirective& directive);
  void Fenced() { session_ = 0; }
  // One piece of work.
  void Work();
  const std::string& name() const { return name_; }
  uint64_t session() const { return session_; }
  // Files have equal shares of the tasks.
  static InputIndex Index(uint64_t tasks, uint32_t lines, uint64_t files = 1);

  // The input of every job here.
  uint64_t index_tasks = 4;
  uint32_t index_lines = 8;
  uint64_t index_files = 1;

 private:
  struct Lane {
    uint64_t task = 0;
    uint64_t next_window = 0;
    uint64_t read = 0;  // windows from the task's beginning
    bool busy = false;
    uint64_t marked = 0;
    uint64_t marking = 0;  // the cut that some server has its mark of, and what that says
    LanePosition position = {};
  };
  struct Held {
    WorkerJobDirective told;
    WorkerJobReport report;
    std::map<uint32_t, Lane> lanes;
  };
  void WorkBsp(Held& held);
  void WorkAsync(Held& held, uint32_t lane_id);
  bool Mark(Held& held, uint32_t lane_id, const std::vector<SimServer*>& servers);
  void Read(Held& held, Lane& lane);
  std::vector<SimServer*> Servers(const Held& held) const;

  std::string name_;
  SimJob job_;
  std::map<std::string, SimServer>* servers_;
  bool alive_ = false;
  uint64_t incarnation_ = 0, session_ = 0, seen_ = 0, turn_ = 0;
  std::map<uint64_t, Held> jobs_;
};

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_SIM_NODES_H_
