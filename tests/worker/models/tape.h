// Derivatives of a double-precision program by reverse accumulation: every operation is written
// down with its partial derivatives, then the list is walked backwards.
#ifndef STRATA_TESTS_WORKER_MODELS_TAPE_H_
#define STRATA_TESTS_WORKER_MODELS_TAPE_H_

#include <cmath>
#include <cstddef>
#include <vector>

namespace strata::testing {

// One thread's list of operations. Numbers made of none of its own (constants) have no place on it.
class Tape {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  static Tape& Get() {
    static thread_local Tape tape;
    return tape;
  }
  size_t Add(size_t left, double by_left, size_t right, double by_right) {
    nodes_.push_back({left, right, by_left, by_right});
    return nodes_.size() - 1;
  }
  size_t size() const { return nodes_.size(); }
  void Cut(size_t size) { nodes_.resize(size); }
  // The derivatives of node `of` by nodes 0 .. count - 1.
  std::vector<double> Derivatives(size_t of, size_t count) const {
    std::vector<double> by(nodes_.size(), 0.0);
    by[of] = 1;
    for (size_t i = of + 1; i-- > 0;) {
      if (nodes_[i].left != kNone) by[nodes_[i].left] += by[i] * nodes_[i].by_left;
      if (nodes_[i].right != kNone) by[nodes_[i].right] += by[i] * nodes_[i].by_right;
    }
    by.resize(count);
    return by;
  }

 private:
  struct Node {
    size_t left, right;
    double by_left, by_right;
  };
  std::vector<Node> nodes_;
};

// A number whose history is on the tape.
struct Var {
  Var(double value = 0) : value(value) {}  // NOLINT: constants convert
  Var(double value, size_t node) : value(value), node(node) {}
  double value;
  size_t node = Tape::kNone;
};

inline Var operator+(const Var& a, const Var& b) {
  return {a.value + b.value, Tape::Get().Add(a.node, 1, b.node, 1)};
}
inline Var operator-(const Var& a, const Var& b) {
  return {a.value - b.value, Tape::Get().Add(a.node, 1, b.node, -1)};
}
inline Var operator*(const Var& a, const Var& b) {
  return {a.value * b.value, Tape::Get().Add(a.node, b.value, b.node, a.value)};
}

inline double Value(double x) { return x; }
inline double Value(const Var& x) { return x.value; }

inline double Relu(double x) { return x > 0 ? x : 0; }
inline Var Relu(const Var& x) {
  return {Relu(x.value), Tape::Get().Add(x.node, x.value > 0 ? 1 : 0, Tape::kNone, 0)};
}

inline double Exp(double x) { return std::exp(x); }
inline Var Exp(const Var& x) {
  return {Exp(x.value), Tape::Get().Add(x.node, Exp(x.value), Tape::kNone, 0)};
}

inline double Inverse(double x) { return 1 / x; }
inline Var Inverse(const Var& x) {
  return {1 / x.value, Tape::Get().Add(x.node, -1 / (x.value * x.value), Tape::kNone, 0)};
}

// Half the square where |x| <= delta, straight beyond.
inline double Huber(double x, double delta) {
  const double size = std::abs(x);
  return size <= delta ? 0.5 * x * x : delta * (size - 0.5 * delta);
}
inline Var Huber(const Var& x, double delta) {
  const double slope = std::abs(x.value) <= delta ? x.value : x.value < 0 ? -delta : delta;
  return {Huber(x.value, delta), Tape::Get().Add(x.node, slope, Tape::kNone, 0)};
}

// ln(1 + e^x).
inline double Softplus(double x) { return Relu(x) + std::log1p(std::exp(-std::abs(x))); }
inline Var Softplus(const Var& x) {
  return {Softplus(x.value), Tape::Get().Add(x.node, 1 / (1 + std::exp(-x.value)), Tape::kNone, 0)};
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_MODELS_TAPE_H_
