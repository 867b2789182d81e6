#include "scheduler/store/memory_metadata_store.h"

namespace strata::scheduler {
namespace {

class MemoryMetadataStore : public MetadataStore {
 public:
  absl::Status Append(const std::vector<MetadataChange>& batch) override {
    for (const MetadataChange& change : batch) {
      if (change.value) {
        records_[change.key] = *change.value;
      } else {
        records_.erase(change.key);
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::map<std::string, std::string>> Read() const override { return records_; }

 private:
  std::map<std::string, std::string> records_;
};

}  // namespace

std::unique_ptr<MetadataStore> MakeMemoryMetadataStore() {
  return std::make_unique<MemoryMetadataStore>();
}

}  // namespace strata::scheduler
