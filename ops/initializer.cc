#include "ops/initializer.h"

#include "ops/counter_random.h"

namespace strata::ops {

void InitialRow(const InitializerConfig& config, uint64_t seed, uint32_t table, uint64_t key,
                uint32_t first_element, uint32_t dim, float* out) {
  const uint64_t stream = RowStream(seed, table, key);
  switch (config.kind) {
    case InitializerKind::kZero:
      for (uint32_t d = 0; d < dim; ++d) out[d] = 0.0f;
      return;
    case InitializerKind::kUniform:
      for (uint32_t d = 0; d < dim; ++d) {
        out[d] = config.scale * SymmetricUniform(ElementBits(stream, first_element + d));
      }
      return;
    case InitializerKind::kNormal:
      for (uint32_t d = 0; d < dim; ++d) {
        out[d] = config.scale * StandardNormal(ElementBits(stream, first_element + d));
      }
      return;
  }
}

}  // namespace strata::ops
