#include "server/disk_room.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/mutex.h"
#include "proto/runtime/files/folders.h"

namespace strata::server {
namespace {

constexpr char kQueue[] = "disk";

// Of one file system; `seen` has the files of several names that were counted.
uint64_t BytesBelow(const std::string& path, uint64_t device, std::set<uint64_t>& seen,
                    FileSystem& files) {
  FileInfo info;
  if (files.LookAtLink(path, info) != 0 || info.device != device) return 0;
  if (info.kind == FileKind::kFile) {
    if (STRATA_MUTATION("room.names_are_files")) return info.bytes;
    return info.names > 1 && !seen.insert(info.inode).second ? 0 : info.on_disk;
  }
  if (info.kind != FileKind::kFolder) return 0;
  uint64_t bytes = 0;
  for (const std::string& name : ListFolder(path, files).value_or(std::vector<std::string>())) {
    bytes += BytesBelow(absl::StrCat(path, "/", name), device, seen, files);
  }
  return bytes;
}

uint64_t Apart(uint64_t a, uint64_t b) { return std::max(a, b) - std::min(a, b); }

std::optional<uint64_t> FreeAt(const std::string& folder) {
  FileSpace space;
  if (FileSystem::Kernel().Space(folder, space) != 0) return std::nullopt;
  return std::max<uint64_t>(1, space.free);
}

}  // namespace

uint64_t BytesOnDisk(const std::string& folder, FileSystem& files) {
  FileInfo info;
  if (files.LookAtLink(folder, info) != 0) return 0;
  std::set<uint64_t> seen;
  return BytesBelow(folder, info.device, seen, files);
}

struct DiskRoom::State {
  mutable Mutex mu;
  Use use ABSL_GUARDED_BY(mu);
};

DiskRoom::DiskRoom(std::string folder, Timer* timer)
    : folder_(std::move(folder)), timer_(timer), state_(std::make_shared<State>()), work_(timer) {}

DiskRoom::~DiskRoom() = default;

void DiskRoom::Begin() {
  const auto free = FreeAt(folder_);
  MutexLock lock(&state_->mu);
  state_->use.free = free.value_or(0);
}

void DiskRoom::Tend(const std::map<std::string, std::string>& folders) {
  const bool others = folders != looked_;
  if (!others && timer_->Now() < next_) return;
  const JobWork::Load load = work_.Of(kQueue);
  if (load.running + load.waiting > 0) return;
  looked_ = folders;
  next_ = timer_->Now() + kAgain;
  work_.Post(kQueue, JobWork::Begins::kInOrder, [state = state_, root = folder_, folders, others] {
    Use use;
    for (const auto& [job, folder] : folders) {
      use.jobs += use.by_job[job] = BytesOnDisk(folder);
    }
    const auto free = FreeAt(root);
    if (!free) return;
    use.free = *free;
    MutexLock lock(&state->mu);
    const uint64_t still = (use.free + use.jobs) / kStill;
    if (!others && Apart(use.free, state->use.free) <= still &&
        Apart(use.jobs, state->use.jobs) <= still) {
      return;
    }
    state->use = std::move(use);
  });
}

DiskRoom::Use DiskRoom::Now() const {
  MutexLock lock(&state_->mu);
  return state_->use;
}

}  // namespace strata::server
