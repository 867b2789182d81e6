#include "scheduler/job/file_queue.h"

#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace strata::scheduler {
namespace {

std::string DescribeWork(const WriteManifestWork& work) {
  return absl::StrCat("writing the manifest of ", work.folder);
}
std::string DescribeWork(const RemoveCheckpointWork& work) {
  return absl::StrCat("removing ", work.folder);
}
std::string DescribeWork(const EmptyFileWork& work) { return absl::StrCat("emptying ", work.path); }
std::string DescribeWork(const RemoveLeftoversWork& work) {
  return absl::StrCat("removing from ", work.directory, " what cuts left that were given up");
}
std::string DescribeWork(const EndRunWork& work) {
  return absl::StrCat("writing the manifest of ", work.folder, " anew");
}

}  // namespace

uint64_t JobOf(const FileWork& work) {
  return std::visit([](const auto& w) { return w.job; }, work);
}

void FileQueue::Add(FileWork work) {
  std::list<FileWork>& queue = work_[JobOf(work)];
  if (auto* look = std::get_if<RemoveLeftoversWork>(&work); look != nullptr) {
    std::set<std::string>& folders = look->over.folders;
    auto it = queue.begin();
    if (it != queue.end() && doing_.contains(look->job)) ++it;
    while (it != queue.end()) {
      const auto* waits = std::get_if<RemoveLeftoversWork>(&*it);
      if (waits == nullptr) {
        ++it;
        continue;
      }
      if (waits->over.folders.empty() || folders.empty()) {
        folders.clear();
      } else {
        folders.insert(waits->over.folders.begin(), waits->over.folders.end());
      }
      it = queue.erase(it);
    }
  }
  queue.push_back(std::move(work));
}

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

std::string FileQueue::Describe(uint64_t job) const {
  const auto it = work_.find(job);
  if (it == work_.end()) return "";
  return std::visit([](const auto& w) { return DescribeWork(w); }, it->second.front());
}

std::set<uint64_t> FileQueue::Jobs() const {
  std::set<uint64_t> jobs = doing_;
  for (const auto& [job, work] : work_) jobs.insert(job);
  return jobs;
}

}  // namespace strata::scheduler
