// What nodes say to a scheduler whose folder comes from an older copy, before it says anything: how
// far its numbers must go so that none of them means two things.
// Tested by tests/scheduler/restored_test.cc
#ifndef STRATA_SCHEDULER_NODES_HEARING_H_
#define STRATA_SCHEDULER_NODES_HEARING_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata::scheduler {

// Pure; one thread. What was given out after the copy was made, and is held by nodes that nobody
// hears, is passed over by strides: no copy is older by so many.
class Hearing {
 public:
  static constexpr uint64_t kSessions = uint64_t{1} << 16;
  static constexpr uint64_t kGenerations = 1000;
  static constexpr uint64_t kJobs = 1000;

  // Nodes are heard until `end`.
  explicit Hearing(absl::Time end) : end_(end) {}

  void Hear(const NodeReport& report);
  bool Over(absl::Time now) const { return now >= end_; }

  // What is free: given what the copy would give out next, or has.
  uint64_t TermAfter(uint64_t copy) const;
  uint64_t SessionFrom(uint64_t copy) const;
  uint64_t JobFrom(uint64_t copy) const;
  uint64_t GenerationAfter(const std::string& job_uid, uint64_t copy) const;
  // Of the configurations of a job's chains: above all that its servers go by.
  uint64_t MapEpochFrom(const std::string& job_uid, uint64_t copy) const;

 private:
  const absl::Time end_;
  uint64_t term_ = 0, session_ = 0, job_ = 0;
  std::map<std::string, uint64_t> generations_, chain_epochs_;  // by job UID
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODES_HEARING_H_
