#include "scheduler/job/file_queue.h"

#include <utility>
#include <variant>

namespace strata::scheduler {

uint64_t JobOf(const FileWork& work) {
  return std::visit([](const auto& w) { return w.job; }, work);
}

void FileQueue::Add(FileWork work) { work_[JobOf(work)].push_back(std::move(work)); }

std::vector<uint64_t> FileQueue::Begin(const std::function<bool(const FileWork&)>& may) {
  std::vector<uint64_t> begun;
  for (const auto& [job, work] : work_) {
    if (may(work.front()) && doing_.insert(job).second) begun.push_back(job);
  }
  return begun;
}

const FileWork* FileQueue::First(uint64_t job) {
  const auto it = work_.find(job);
  if (it != work_.end()) return &it->second.front();
  doing_.erase(job);
  return nullptr;
}

void FileQueue::Done(uint64_t job) {
  const auto it = work_.find(job);
  it->second.pop_front();
  if (it->second.empty()) work_.erase(it);
}

std::set<uint64_t> FileQueue::Jobs() const {
  std::set<uint64_t> jobs = doing_;
  for (const auto& [job, work] : work_) jobs.insert(job);
  return jobs;
}

}  // namespace strata::scheduler
