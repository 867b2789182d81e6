#include "server/snapshot/file.h"

#include <span>
#include <utility>

#include "proto/core/cut_file_name.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/io/file_io.h"
#include "storage/row/hash.h"

namespace strata::server {

SnapshotFile::SnapshotFile(Executor* disk, std::string path, FrozenState state,
                           std::shared_ptr<SnapshotProgress> progress)
    : disk_(disk),
      path_(std::move(path)),
      progress_(std::move(progress)),
      state_(std::move(state)) {}

SnapshotFile::~SnapshotFile() {
  Drop();
  {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &SnapshotFile::NothingRuns));
  }
  Clean();
}

// Who asked for the file gave it up between its last byte and the word of it, and nobody else knows
// that it is there. Another process of the server may have put one of its own in its place.
void SnapshotFile::Clean() {
  const BlockingSection disk;
  writer_ = nullptr;
  const std::optional<FileInfo> made = std::exchange(made_, std::nullopt);
  if (!made) return;
  FileInfo there;
  FileSystem& files = FileSystem::Kernel();
  if (files.LookAtLink(path_, there) < 0) return;
  if (there.device == made->device && there.inode == made->inode) files.Remove(path_);
}

void SnapshotFile::Keep() { made_.reset(); }

void SnapshotFile::Write(std::shared_ptr<const RowBlock> block, Written written) {
  Add([this, block = std::move(block), written = std::move(written)] { written(DoWrite(*block)); });
}

void SnapshotFile::Finish(Finished finished) {
  Add([this, finished = std::move(finished)] { finished(DoFinish()); });
}

void SnapshotFile::Drop() {
  std::deque<std::function<void()>> dropped;
  absl::MutexLock lock(&mu_);
  if (std::exchange(dropped_, true)) return;
  dropped.swap(work_);
  // At once, for who dropped it may need the room; with this, where nothing runs that could.
  if (running_) work_.push_back([this] { Clean(); });
}

bool SnapshotFile::Idle() const {
  absl::MutexLock lock(&mu_);
  return !running_;
}

void SnapshotFile::Add(std::function<void()> work) {
  if (disk_ == nullptr) return work();
  {
    absl::MutexLock lock(&mu_);
    if (dropped_) return;
    work_.push_back(std::move(work));
    if (running_) return;
    running_ = true;
  }
  disk_->Post([this] { Run(); });
}

// One piece of work, so that others of the pool get their turn. After `running_ = false` this may
// be gone.
void SnapshotFile::Run() {
  std::function<void()> work;
  {
    absl::MutexLock lock(&mu_);
    if (work_.empty()) {
      running_ = false;
      return;
    }
    work = std::move(work_.front());
    work_.pop_front();
  }
  work();
  work = nullptr;
  disk_->Post([this] { Run(); });
}

absl::Status SnapshotFile::DoWrite(const RowBlock& block) {
  if (!status_.ok()) return status_;
  if (path_.empty()) {
    for (const storage::TableShape& shape : state_.header.tables) {
      if (shape.id != block.table) continue;
      const std::span<const uint8_t> rows(block.rows);
      for (size_t i = 0; i < block.positions.size(); ++i) {
        sums_.hash += storage::HashRow(shape.id, shape.KeyAt(block.positions[i]),
                                       rows.subspan(i * shape.row_bytes(), shape.row_bytes()));
      }
    }
    sums_.rows += block.positions.size();
    return status_;
  }
  const BlockingSection disk;
  status_ = Failpoint("server.snapshot.write");
  if (status_.ok() && writer_ == nullptr) {
    auto writer = storage::ShardFileWriter::Create(path_, state_.header);
    // The folder was empty, and who removes what earlier cuts left took it for one of theirs.
    if (absl::IsNotFound(writer.status()) && !STRATA_MUTATION("cut.folder_not_made_again")) {
      const absl::Status folder = storage::MakeFolder(path_.substr(0, path_.find_last_of('/')));
      if (folder.ok()) writer = storage::ShardFileWriter::Create(path_, state_.header);
    }
    status_ = writer.status();
    if (writer.ok()) writer_ = *std::move(writer);
  }
  if (status_.ok()) status_ = writer_->AddRows(block.table, block.positions, block.rows);
  if (status_.ok()) status_ = writer_->AddErased(block.table, block.erased);
  if (status_.ok() && progress_ != nullptr) progress_->written_bytes += block.bytes();
  return status_;
}

absl::StatusOr<storage::ShardFileSummary> SnapshotFile::DoFinish() {
  if (path_.empty()) return sums_;
  if (absl::Status s = DoWrite({}); !s.ok()) return s;  // the file, if there was no row
  const BlockingSection disk;
  if (absl::Status s = Failpoint("server.snapshot.finish"); !s.ok()) return s;
  if (absl::Status s = state_.AddTo(*writer_); !s.ok()) return s;
  // Also where Finish fails behind the rename. By what it is while it has a name of its own:
  // another may have the other name.
  FileInfo made;
  const std::string begun = NameWhileWritten(path_, state_.header.identity.job);
  if (FileSystem::Kernel().LookAtLink(begun, made) == 0) made_ = made;
  auto summary = writer_->Finish();
  writer_ = nullptr;
  FileInfo there;
  if (FileSystem::Kernel().LookAtLink(path_, there) != 0 || !made_ ||
      there.device != made_->device || there.inode != made_->inode) {
    made_.reset();
  }
  if (absl::Status s = Failpoint("server.snapshot.finished"); !s.ok()) return s;
  if (summary.ok() && progress_ != nullptr) {
    progress_->total_bytes = summary->bytes;
    progress_->written_bytes = summary->bytes;
  }
  return summary;
}

}  // namespace strata::server
