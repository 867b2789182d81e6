// Who has the copies of the shards of one of a job's servers, and when that changes: rules R9, R13,
// R14 and R16 to R18 of tests/model/README.md. Pure functions: JobMachine gathers what is known,
// and records each configuration before anybody is told of it (R8).
#ifndef STRATA_SCHEDULER_JOB_CHAINS_CHAIN_MACHINE_H_
#define STRATA_SCHEDULER_JOB_CHAINS_CHAIN_MACHINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// What is known of one copy: of the process that its server is now, in this generation.
struct CopyFacts {
  bool alive = false;      // heard of within a lease
  bool opened = false;     // it has said OPEN
  bool restarted = false;  // an earlier process had said OPEN, and this one has not yet
  // It holds no shards open now, and is to: it has just begun again, or opens them, also in place.
  // Nothing of it is lost as far as anybody knows, and it is waited for.
  bool opens = false;
  bool overdue = false;  // the same for longer than it is waited for; `why` has what it said
  bool closed = false;   // a copy beside it saw the connection of this very process closed
  bool lost = false;     // it has said that what it held is gone, or cannot be opened
  std::string why = "";  // what it said then, or why it does not open
  // It was heard of after something was known to be wrong with another copy. Who was silent since
  // then may have died with that one.
  bool answered = false;
  // Its last word on this very copy; null: none.
  const CopyReport* report = nullptr;
};

// Whether it cannot be what a chain goes on with as it is.
bool IsInTrouble(const CopyFacts& copy);

struct ChainFacts {
  std::vector<CopyFacts> members;         // as ChainRecord.members
  std::optional<CopyFacts> joining = {};  // where that is set
  uint32_t replicas = 1;                  // spec.storage.replicas
  bool bsp = true;
  // A server that can take one more copy, and a log id for it; nothing: there is none, or this is
  // no time for one.
  std::function<std::optional<CopyRecord>()> candidate = nullptr;
  uint64_t next_epoch = 0;  // of a new configuration
  int64_t now_unix_ms = 0;
  std::string shards = "";  // for people: "shards 0-3"
};

struct ChainChange {
  ChainRecord next;
  std::string reason;  // of a condition
  std::string text;
  // Servers whose copies failed: they are not to be asked again at once.
  std::vector<std::string> failed = {};
};

// So little is missing that a copy becomes a member: bytes, or in bsp steps of each shard, which
// may be long ones.
inline constexpr uint64_t kSmallLagSteps = 2;
inline constexpr uint64_t kSmallLagBytes = uint64_t{1} << 20;

// The next configuration; nothing: this one stands. To be asked again after each one. Rules:
//   * Members that are silent, ended, lost or overdue leave when another full member answers. If
//     none does, nobody leaves: the last to hold everything may come back (R9). Who was restarted
//     and opens what it has is waited for: a copy made anew would cost more.
//   * The first full member that is left is the head.
//   * Whoever joins begins under a new log id (R16, R17), is copied to by the last member (R14),
//     becomes a member when little is missing by the words of both, and full when both know a
//     configuration that has it and the last one says that it has all (R13). One at a time.
//   * A member that leaves or comes is a new epoch. To begin to copy, to give that up, and "full"
//     are none.
std::optional<ChainChange> NextConfiguration(const ChainRecord& now, const ChainFacts& facts);

enum class CopiesVerdict {
  kServed,   // a full member holds its shards open
  kOpening,  // one is there, and recovers them
  kAway,     // none is there that may hold everything: one may come back
  kLost,     // all full members have said that what they held is gone
};
CopiesVerdict JudgeCopies(const ChainRecord& now, const ChainFacts& facts);

// The copy of a server: a member, or the one that joins. Null: it has none.
const CopyRecord* FindCopy(const ChainRecord& chain, const std::string& server);
CopyRecord* FindCopy(ChainRecord& chain, const std::string& server);

// After every change of `full`: since when copies are missing.
void NoteShort(uint32_t replicas, int64_t now_unix_ms, ChainRecord& chain);

// All members reopen from one checkpoint, each by itself: who was a learner has all that the others
// have. Who was being copied to begins again.
void BeginChainAnew(uint32_t replicas, ChainRecord& chain);

// For people: "shards 0-3 have 1 of 2 copies (s1) since 05:06:07 UTC; s0 is being copied to".
// Empty: nothing is missing.
std::string DescribeShort(const ChainRecord& chain, uint32_t replicas, uint32_t min_replicas,
                          const std::string& shards);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CHAINS_CHAIN_MACHINE_H_
