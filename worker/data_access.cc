#include "worker/data_access.h"

#include "worker/data/file_batch_source.h"
#include "worker/data/index.h"

namespace strata {
namespace {

class FileAccess : public DataAccess {
 public:
  absl::StatusOr<InputIndex> BuildIndex(const DataSpec& data,
                                        const std::vector<std::string>& files) override {
    return strata::BuildIndex(data, files);
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec& spec, const InputIndex& index,
                                                    const DataShape& shape) override {
    if (absl::Status s = CheckFingerprints(index); !s.ok()) return s;
    return OpenFileBatchSource(spec, index, shape);
  }
};

}  // namespace

DataAccess* DataAccess::Files() {
  static FileAccess* const files = new FileAccess;
  return files;
}

}  // namespace strata
