// When a job must go back to a checkpoint, and when it only has to wait.
#ifndef STRATA_SCHEDULER_JOB_RECOVERY_COORDINATOR_H_
#define STRATA_SCHEDULER_JOB_RECOVERY_COORDINATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_field.h"

namespace strata::scheduler {

// What is known of one of a job's servers.
struct ServerFacts {
  bool alive = false;          // heard of within a lease
  absl::Duration silent;       // since it was last heard of, as far as the scheduler heard
  bool opened = false;         // its shards were open in this generation
  bool same_process = false;   // and the process that opened them is the one that is there now
  bool keeps_nothing = false;  // durability `memory`: a process's end loses its shards
  bool replaceable = false;    // another live server could take its place
  bool name_taken = false;     // a worker has its name: it cannot come back while that lives
  // How long one whose disk holds its shards may be silent (spec.recovery.replaceAfter); zero: a
  // lease and kReturnLeases.
  absl::Duration patience = absl::ZeroDuration();
  std::string from = "the last checkpoint";  // what the job would go back to, for people
};

enum class ServerVerdict {
  kFine,
  kWait,      // it is away or opening; nothing else is to be done
  kRollBack,  // what it held is lost; it is there and can take its shards anew
  kReplace,   // it is away for too long: another server takes its place, and the job rolls back
};

// Deadlines: a server with nothing to lose (its shards were not open yet, or are gone with its
// process) is replaced when its lease lapses; one whose disk holds its shards, kReturnLeases later,
// or when spec.recovery.replaceAfter is over.
// Without another server the job waits for it.
inline constexpr int kReturnLeases = 20;
ServerVerdict JudgeServer(const ServerFacts& facts, absl::Duration lease);

// For users: which server a job waits for, since when, and what they can do. `address`: where it
// served, "" if unknown. `last_seen`: infinitely past when it is not known any more.
std::string DescribeSilentServer(absl::string_view name, absl::string_view address,
                                 absl::Time last_seen, const ServerFacts& facts,
                                 absl::Duration lease);

// The same of shards whose full copies are all away: one of them may come back.
struct AwayCopy {
  std::string server;
  absl::Time last_seen;  // infinitely past when it is not known any more
  std::string lost;      // what it said when it came back without them; empty: it did not
};
std::string DescribeAwayCopies(absl::string_view shards, const std::vector<AwayCopy>& away,
                               const ServerFacts& facts, absl::Duration lease);

// What is known where a server could not read the checkpoint that its job was to start from: it
// found damage (DATA_LOSS). That may be the checkpoint's, or the server's own.
struct ReadFacts {
  bool doubted = false;      // the job began a generation anew because of such a read before
  bool same_reader = false;  // and it was this server's
  bool another = false;      // another live server has a part in the job, or could have
  bool others_read = false;  // the job's other live servers have read what they were to
};

enum class ReadVerdict {
  kReadAgain,  // another server reads what this one could not; where it is alone, it tries again
  kWait,       // for what others read
  kSetAside,   // two reads agree: the checkpoint is damaged
  kBadReader,  // others read it, and this server does not, twice: the checkpoint stays
};
ReadVerdict JudgeRead(const ReadFacts& facts);

// A bad reader that no other server can replace tries again after this many leases.
inline constexpr int kRereadLeases = 3;

// For users. `why`: what the server said, its name first. `full`: of servers that could take its
// place but for what is full there, which have too little free; "": there is none.
std::string DescribeBadReader(absl::string_view checkpoint, absl::string_view why,
                              absl::string_view full = "");
// Every checkpoint that a job had is set aside. `init`: it is spec.model.initFrom.
std::string DescribeNoCheckpoint(const std::vector<std::string>& set_aside, bool init);

// So many damaged checkpoints of a job are remembered. One that was forgotten, and comes back with
// an older copy of the scheduler's records, is found damaged once more.
inline constexpr int kMaxSetAside = 16;
// The latest stands last.
void AddSetAside(const std::string& folder, google::protobuf::RepeatedPtrField<std::string>& aside);
// What lies in the folder is another one by now.
void DropSetAside(absl::string_view folder, google::protobuf::RepeatedPtrField<std::string>& aside);

// The clocks of a job's servers in one generation (bsp). A pure state machine. They may differ by
// one between shards, but reports are of different moments, so that only this is proof of a loss: a
// report that was made after another one (of any server) was received, and that is behind it by two
// steps or more. A report is known to be made after what was received two reports of its server
// before (a node may send one while the answer to the last is on its way), or before its process
// registered.
class RecoveryCoordinator {
 public:
  // Roll-backs in a row, none with a later step than before, after which the job fails.
  static constexpr uint32_t kMaxFruitless = 10;

  // A generation begins at `clock`.
  void Begin(uint32_t servers, uint64_t clock);
  void ProcessChanged(uint32_t server);
  // An open server's smallest and largest clock. False: steps are lost; roll back. `least_end`:
  // smallest step that is the last of a shard's log, where some of that may not be committed yet.
  bool Clocks(uint32_t server, uint64_t min_clock, uint64_t max_clock, uint64_t least_end);
  bool Clocks(uint32_t server, uint64_t min_clock, uint64_t max_clock) {
    return Clocks(server, min_clock, max_clock, min_clock);
  }

  // Smallest and largest of what is known.
  uint64_t min_clock() const;
  uint64_t max_clock() const { return max_clock_; }

 private:
  struct View {
    uint64_t min_clock = 0;  // of this process, the latest
    bool spoke = false;      // this process has reported clocks
    uint64_t floor = 0;      // largest clock known to be older than its next report
    uint64_t next_floor = 0;
  };
  std::vector<View> servers_;
  uint64_t begin_clock_ = 0;
  uint64_t max_clock_ = 0;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_RECOVERY_COORDINATOR_H_
