// Random messages of the data plane as other implementations of protobuf may write them: fields in
// any order and repeated, embedded messages in several pieces, numbers longer than needed, packed
// and unpacked lists, unknown fields and groups.
#ifndef STRATA_TESTS_PROTO_WIRE_WIRE_GENERATOR_H_
#define STRATA_TESTS_PROTO_WIRE_WIRE_GENERATOR_H_

#include <cstdint>
#include <random>
#include <string>

#include "tests/proto/wire/codec_oracle.h"

namespace strata::testing {

class WireGenerator {
 public:
  explicit WireGenerator(uint64_t seed) : random_(seed) {}

  // A well-formed message: every parser of protobuf accepts it.
  std::string Message(MessageKind kind);
  // Changes a few bytes: flips, overwrites, inserts, removes, repeats or cuts.
  void Mutate(std::string& message);

  // Uniform in [0, n). REQUIRES: n > 0.
  uint64_t Below(uint64_t n) { return random_() % n; }

 private:
  struct Field;
  struct Schema;
  static const Schema& SchemaOf(MessageKind kind);

  std::string Fields(const Schema& schema);
  void Add(const Field& field, std::string& out);
  void AddUnknown(std::string& out, int depth);
  void AddNumber(uint64_t v, int most_bytes, std::string& out);
  uint64_t Number();
  std::string Bytes();

  std::mt19937_64 random_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_WIRE_WIRE_GENERATOR_H_
