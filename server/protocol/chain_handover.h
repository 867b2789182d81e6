// When a copy goes by another configuration of its chain: when all of its shards do, each behind
// what its queue held then (rule R2 of tests/model/README.md).
//
//   if (auto number = handover.Told(epoch)) ...  // post it to every shard's queue, in one piece
//   if (handover.Handed(shard, *number)) ...     // there: the copy goes by it from now on
#ifndef STRATA_SERVER_PROTOCOL_CHAIN_HANDOVER_H_
#define STRATA_SERVER_PROTOCOL_CHAIN_HANDOVER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace strata::server {

// A pure machine. Configurations are numbered in the order in which the copy was told of them: some
// that differ have the same epoch.
class ChainHandover {
 public:
  explicit ChainHandover(size_t shards) : handed_(shards, 0) {}

  // Its number; nothing: the copy was told of a later epoch.
  std::optional<uint64_t> Told(uint64_t epoch);
  // The shard goes by that one. True: it was the last of them. REQUIRES: the shard was handed all
  // numbers before, in order.
  bool Handed(size_t shard, uint64_t number);

  // Whether a shard that goes by `own` takes what was sent under `epoch`. Of another epoch it came
  // from one that may be the copy before this one no more, and this one may lead by now.
  static bool Takes(uint64_t own, uint64_t epoch);

 private:
  uint64_t epoch_ = 0;
  uint64_t told_ = 0;
  uint64_t gone_by_ = 0;
  std::vector<uint64_t> handed_;  // by shard
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_CHAIN_HANDOVER_H_
