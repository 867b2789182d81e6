// How the files of a checkpoint are named (storage/FORMAT.md, "Increments"): a name says which cut
// made it, so that who gives a cut up knows what that left.
// Tested by tests/proto/core/values_test.cc
#ifndef STRATA_PROTO_CORE_CUT_FILE_NAME_H_
#define STRATA_PROTO_CORE_CUT_FILE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"

namespace strata {

// shard-00003-g1-c7.strata: all rows, by cut 7 of generation 1; shard-00003.1-g1-c8.strata: the
// first increment on it; shard-00003-g1-c7-l8.strata: a link to the former that cut 8 made. Of a
// shard with copies the head's epoch is in it, shard-00003-g1-c7-e5.strata: a superseded head and
// the one after it may be at one cut. While a file is written: NAME.JOBUID.tmp.
struct CutFileName {
  ShardId shard;
  uint32_t sequence = 0;
  Generation generation;
  uint64_t cut = 0;             // that wrote the file
  uint64_t epoch = 0;           // chain epoch in which a head began it; 0: there are no copies
  uint64_t link = 0;            // that made the link; 0: it is none
  std::optional<JobUid> begun;  // the job that writes it; nothing: it has its name

  // The cut that made this name.
  uint64_t made_by() const { return link != 0 ? link : cut; }
  std::string text() const;
  // Nothing: it is no such name.
  static std::optional<CutFileName> Parse(absl::string_view name);

  friend bool operator==(const CutFileName&, const CutFileName&) = default;
};

// The name under which a job writes the file `name` until that is complete.
std::string NameWhileWritten(absl::string_view name, const JobUid& job);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_CUT_FILE_NAME_H_
