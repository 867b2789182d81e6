// What is known of the copies of the shards of one of a job's servers: what each said last, what
// others saw of it, and since when it holds no shards open. Pure; JobMachine has one for each of
// its servers, and asks chain_machine.h what becomes of the chain.
// Tested by tests/scheduler/job/chain_restarts_test.cc
#ifndef STRATA_SCHEDULER_JOB_CHAINS_COPY_VIEW_H_
#define STRATA_SCHEDULER_JOB_CHAINS_COPY_VIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "scheduler/job/chains/chain_machine.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Of one copy, by server; repeated by servers, so not recorded.
struct CopyView {
  uint64_t session = 0;                    // of the process that the rest is of
  absl::Time seen = absl::InfinitePast();  // since when it is that one
  ServerJobReport last;
  bool lost = false, failed = false, unread = false;  // LOST or FAILED; of the checkpoint
  std::string why, waits;                             // what it said then; why it tries again
  // Since when it says OPENING of this very copy, and since when it says what keeps it from that.
  std::optional<absl::Time> opening, held_up;
  uint64_t reports = 0;  // of this process
  uint64_t counted = 0;  // those before the last news of trouble
};

struct ChainView {
  std::map<std::string, CopyView> copies = {};
  std::set<std::string> troubled = {};  // those with which something was wrong
};

// Members, and who joins.
std::set<std::string> ServersOf(const ChainRecord& chain);

// Whether a full member says that the connection of the process which has this name now was closed.
// Learners and who joins say nothing that counts (R9).
bool NamedClosed(const Membership& members, const ChainRecord& chain, const std::string& server);

// Whether any process says so, whatever it has to do with the chain: not asked to have a copy.
bool SeenClosed(const Membership& members, const std::string& server);

// Words of a process that is gone count no more.
void SeeCopies(const Membership& members, const ChainRecord& chain, absl::Time now,
               ChainView& view);
// With each copy that something is newly wrong with, the others are to be heard of once more before
// it leaves by their word: several may have died at once. Who says that it saw it end is alive.
void NoteTrouble(const Membership& members, const ChainRecord& chain, uint64_t generation,
                 absl::Time now, ChainView& view);

// What is known after a change: nothing of who left, and nothing yet of who joins.
void TakeChange(const ChainRecord& before, const ChainRecord& next, ChainView& view);

// `generation`: the job's. A process that has just begun, or says OPENING, is waited for, as long
// as nothing keeps it from that: a lease after it first said what does, or after it began to open
// anew what it had open, or after it began and said nothing of the copy, it is overdue.
CopyFacts FactsOf(const Membership& members, const ChainRecord& chain, uint64_t generation,
                  const CopyRecord& copy, const ChainView& view, absl::Time now);

// Takes a report on a copy by the process that SeeCopies saw last. `restored`: the generation began
// from a checkpoint.
enum class CopyWord : uint8_t {
  kNothing,  // of an earlier copy, or nothing that counts
  kLost,     // what it held is gone, or cannot be opened
  kOpening,
  kWaits,  // as kOpening, and CopyView::waits has a new reason
  kOpen,   // the record has the generation and the session
};
CopyWord HearCopy(const Node& node, const ServerJobReport& report, uint64_t generation,
                  bool restored, absl::Time now, CopyRecord& copy, CopyView& view);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CHAINS_COPY_VIEW_H_
