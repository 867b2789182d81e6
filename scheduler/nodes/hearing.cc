#include "scheduler/nodes/hearing.h"

#include <algorithm>

namespace strata::scheduler {

void Hearing::Hear(const NodeReport& report) {
  term_ = std::max(term_, report.term());
  session_ = std::max(session_, report.session());
  const auto job = [this](const auto& j) {
    job_ = std::max(job_, j.job());
    uint64_t& generation = generations_[j.job_uid()];
    generation = std::max(generation, j.generation());
  };
  for (const ServerJobReport& j : report.server_jobs()) {
    job(j);
    uint64_t& epoch = chain_epochs_[j.job_uid()];
    epoch = std::max(epoch, j.copy().chain_epoch());
  }
  for (const WorkerJobReport& j : report.worker_jobs()) job(j);
}

uint64_t Hearing::TermAfter(uint64_t copy) const { return std::max(copy, term_) + 1; }

uint64_t Hearing::SessionFrom(uint64_t copy) const {
  return std::max(copy, session_ + 1) + kSessions;
}

uint64_t Hearing::JobFrom(uint64_t copy) const { return std::max(copy, job_ + 1) + kJobs; }

uint64_t Hearing::GenerationAfter(const std::string& job_uid, uint64_t copy) const {
  const auto heard = generations_.find(job_uid);
  return std::max(copy, heard == generations_.end() ? 0 : heard->second) + kGenerations;
}

uint64_t Hearing::MapEpochFrom(const std::string& job_uid, uint64_t copy) const {
  const auto heard = chain_epochs_.find(job_uid);
  return std::max(copy, heard == chain_epochs_.end() ? 0 : heard->second + 1);
}

}  // namespace strata::scheduler
