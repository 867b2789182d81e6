// The area under the ROC curve of a stream of predictions, in bounded memory.
#ifndef STRATA_TOOLS_GENERATE_AUC_SAMPLE_H_
#define STRATA_TOOLS_GENERATE_AUC_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata {

// Keeps all predictions up to `capacity`, then a uniform sample (Vitter's algorithm R, ACM TOMS
// 1985, with a fixed seed, so the same stream gives the same sample). One thread.
class AucSample {
 public:
  explicit AucSample(size_t capacity) : capacity_(capacity) {}

  void Add(float score, bool label);
  size_t size() const { return kept_.size(); }

  // Exact over what is kept, ties counted half; 0.5 where one class is missing. Sorts.
  double Auc();

 private:
  const size_t capacity_;
  uint64_t seen_ = 0;
  std::vector<std::pair<float, bool>> kept_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_GENERATE_AUC_SAMPLE_H_
