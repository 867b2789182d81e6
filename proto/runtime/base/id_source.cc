#include "proto/runtime/base/id_source.h"

#include <random>

namespace strata {
namespace {

uint64_t DrawHalf() {
  static thread_local std::random_device device;
  const uint64_t high = device();
  return high << 32 | device();
}

class SystemIds : public IdSource {
 public:
  Drawn Draw() override {
    Drawn drawn;
    while (drawn.high == 0 && drawn.low == 0) drawn = {DrawHalf(), DrawHalf()};
    return drawn;
  }
};

}  // namespace

IdSource* IdSource::System() {
  static SystemIds* const source = new SystemIds;
  return source;
}

}  // namespace strata
