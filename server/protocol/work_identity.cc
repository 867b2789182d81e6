#include "server/protocol/work_identity.h"

#include <initializer_list>

#include "proto/core/mutation.h"
#include "proto/core/position.h"

namespace strata::server {
namespace {

// Kinds, so that work of one is never that of another.
constexpr uint64_t kStep = 1;
constexpr uint64_t kWindow = 2;
constexpr uint64_t kMark = 3;

// The seed is mixed before a number joins it: seeds and numbers are small, and the sums of small
// numbers meet.
uint64_t Join(uint64_t seed, std::initializer_list<uint64_t> numbers) {
  for (const uint64_t n : numbers) seed = Mix64(Mix64(seed) ^ n);
  return seed;
}

// Where the identity of a push begins. Its shards are not in it: all parts are one work.
uint64_t Begin(uint64_t kind, const wire::PushRequestView& request) {
  if (!STRATA_MUTATION("push.parts_are_other_work")) return kind;
  for (const auto shard : request.shards) kind = Join(kind, {shard.value});
  return kind;
}

}  // namespace

uint64_t WorkOfContributions(const wire::PushRequestView& request) {
  uint64_t work =
      Join(Begin(kStep, request), {request.fields.step.value, request.contributions.size()});
  for (const wire::ContributionView& c : request.contributions) {
    work = Join(work, {c.node.first, c.node.end});
  }
  return work;
}

uint64_t WorkOfWindow(const wire::PushRequestView& request) {
  return Join(Begin(kWindow, request), {request.fields.task.value, request.fields.window});
}

uint64_t WorkOfMark(const wire::MarkRequest& request) {
  return Join(kMark, {request.lane.value, request.cut});
}

}  // namespace strata::server
