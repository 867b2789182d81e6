#include "ops/initializer.h"

#include "ops/counter_random.h"
#include "ops/cpu_features.h"
#include "ops/initializer_kernels.h"

namespace strata::ops {

void InitialRow(const InitializerConfig& config, uint64_t seed, uint32_t table, uint64_t key,
                uint32_t first_element, uint32_t dim, float* out) {
  const uint64_t stream = RowStream(seed, table, key);
  const bool wide = ActiveIsaLevel() == IsaLevel::kV4;
  switch (config.kind) {
    case InitializerKind::kZero:
      for (uint32_t d = 0; d < dim; ++d) out[d] = 0.0f;
      return;
    case InitializerKind::kUniform:
      return (wide ? v4::FillUniform : v3::FillUniform)(config.scale, stream, first_element, dim,
                                                        out);
    case InitializerKind::kNormal:
      return (wide ? v4::FillNormal : v3::FillNormal)(config.scale, stream, first_element, dim,
                                                      out);
  }
}

}  // namespace strata::ops
