// Where ids that must be nobody else's come from.
// Tested by tests/proto/core/values_test.cc
#ifndef STRATA_PROTO_RUNTIME_BASE_ID_SOURCE_H_
#define STRATA_PROTO_RUNTIME_BASE_ID_SOURCE_H_

#include <atomic>
#include <cstdint>

namespace strata {

// Thread-safe.
class IdSource {
 public:
  struct Drawn {
    uint64_t high = 0;
    uint64_t low = 0;
  };
  virtual ~IdSource() = default;
  // Never both 0.
  virtual Drawn Draw() = 0;

  // The system's randomness. Lives as long as the process.
  static IdSource* System();
};

// An id type of proto/core/uid.h.
template <typename Id>
Id DrawId(IdSource& source) {
  const IdSource::Drawn drawn = source.Draw();
  return Id{drawn.high, drawn.low};
}

// 1, 2, 3 ...: tests and simulations.
class CountedIds : public IdSource {
 public:
  // `high` keeps the ids of several sources apart.
  explicit CountedIds(uint64_t high = 0) : high_(high) {}
  Drawn Draw() override { return {high_, ++last_}; }

 private:
  const uint64_t high_;
  std::atomic<uint64_t> last_{0};
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_ID_SOURCE_H_
