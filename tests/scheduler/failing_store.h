// A MetadataStore that can fail, as one on a full disk, and outlives whoever holds it.
#ifndef STRATA_TESTS_SCHEDULER_FAILING_STORE_H_
#define STRATA_TESTS_SCHEDULER_FAILING_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// Takes nothing while `*fails`.
class FailingStore : public MetadataStore {
 public:
  FailingStore(const bool* fails, std::shared_ptr<MetadataStore> inner)
      : fails_(fails), inner_(std::move(inner)) {}
  absl::Status Append(const std::vector<MetadataChange>& batch) override {
    return *fails_ ? absl::ResourceExhaustedError("disk full") : inner_->Append(batch);
  }
  absl::StatusOr<std::map<std::string, std::string>> Read() const override {
    return inner_->Read();
  }

 private:
  const bool* const fails_;
  const std::shared_ptr<MetadataStore> inner_;
};

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_FAILING_STORE_H_
