#include "worker/data/reading/data_access.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/files/data_file.h"
#include "worker/data/index/index.h"
#include "worker/data/reading/file_batch_source.h"

namespace strata {
namespace {

class FileAccess : public DataAccess {
 public:
  explicit FileAccess(TextFiles::Options options)
      : files_(std::make_shared<TextFiles>(std::move(options))) {}

  absl::StatusOr<InputIndex> BuildIndex(const JobSpec& spec, const std::vector<std::string>& files,
                                        const IndexOptions& options) override {
    Kept kept{files, {}};
    for (const std::string& path : files) {
      if (absl::Status s = StillWanted(options.cancelled, path); !s.ok()) return s;
      absl::StatusOr<std::shared_ptr<const DataFile>> text = files_->Open(path, options.cancelled);
      if (!text.ok()) return text.status();
      if ((*text)->is_copy()) kept.copies.push_back(*std::move(text));
    }
    absl::StatusOr<InputIndex> index = strata::BuildIndex(spec, files, files_.get(), options);
    if (!index.ok() || kept.copies.empty()) return index;
    absl::MutexLock lock(&mu_);
    kept_.push_back(std::move(kept));
    if (kept_.size() > kMostKept) kept_.pop_front();
    return index;
  }

  absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec& spec, const InputIndex& index,
                                                    const DataShape& shape) override {
    if (absl::Status s = CheckFingerprints(index, *files_); !s.ok()) return s;
    absl::StatusOr<std::unique_ptr<BatchSource>> source =
        OpenFileBatchSource(spec, index, shape, files_);
    std::vector<std::string> paths;
    for (const InputFile& file : index.files()) paths.push_back(file.path());
    absl::MutexLock lock(&mu_);
    const auto same = [&](const Kept& kept) { return kept.files == paths; };
    kept_.erase(std::remove_if(kept_.begin(), kept_.end(), same), kept_.end());
    return source;
  }

 private:
  // Decompressed copies of an index pass, so that the training that follows need not make them
  // anew: until the files are opened, or other index passes come.
  struct Kept {
    std::vector<std::string> files;
    std::vector<std::shared_ptr<const DataFile>> copies;
  };
  static constexpr size_t kMostKept = 2;  // train and eval of one job

  const std::shared_ptr<TextFiles> files_;
  absl::Mutex mu_;
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<DataAccess> DataAccess::MakeFiles(TextFiles::Options options) {
  return std::make_unique<FileAccess>(std::move(options));
}

DataAccess* DataAccess::Files() {
  static FileAccess* const files = new FileAccess({});
  return files;
}

}  // namespace strata
