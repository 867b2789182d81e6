#include "tools/cluster/import/array_header.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/seed.h"
#include "tests/tools/cluster/import/written_arrays.h"

namespace strata {
namespace {

using testing::BytesOf;
using testing::Npy;
using testing::NpyOf;
using testing::Safetensors;
using testing::Tensor;

const std::string kData = BytesOf(std::vector<float>{1, 2, 3, 4, 5, 6});

std::string NpyError(const std::string& file) {
  const auto place = ParseNpy(file, file.size());
  if (place.ok()) return "";
  CHECK(absl::IsInvalidArgument(place.status()));
  return std::string(place.status().message());
}

absl::StatusOr<std::vector<ArrayPlace>> Tensors(const std::string& file) {
  const auto length = SafetensorsHeaderBytes(file, file.size());
  if (!length.ok()) return length.status();
  return ParseSafetensors(absl::string_view(file).substr(8, *length), file.size());
}

std::string TensorsError(const std::string& file) {
  const auto places = Tensors(file);
  if (places.ok()) return "";
  CHECK(absl::IsInvalidArgument(places.status()));
  return std::string(places.status().message());
}

TEST_CASE("npy files of every version say where their elements are", "[import]") {
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  for (const char version : {1, 2, 3}) {
    const std::string file = NpyOf(dict, kData, version);
    const auto place = ParseNpy(file, file.size());
    REQUIRE(place.ok());
    CHECK(place->type == ElementType::kFloat32);
    CHECK(place->shape == std::vector<uint64_t>{2, 3});
    CHECK(file.substr(place->offset, place->bytes) == kData);
  }
  // Other ways of writing the same.
  for (const char* other : {"{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
                            "{'fortran_order': False, 'shape': (2, 3,), 'descr': '<f4'}"}) {
    CHECK(NpyError(NpyOf(other, kData)) == "");
  }
  CHECK(NpyError(Npy("<i8", "(3,)", std::string(24, 'x'))) == "");
  CHECK(NpyError(Npy("|u1", "(6,)", std::string(6, 'x'))) == "");
  CHECK(NpyError(Npy("<f8", "()", std::string(8, 'x'))) == "");
  // One column lies the same in either order.
  CHECK(NpyError(NpyOf("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", kData)) == "");
}

TEST_CASE("npy files that cannot be read say why", "[import]") {
  const auto error = [](const std::string& file, const std::string& says) {
    CHECK_THAT(NpyError(file), Catch::Contains(says));
  };
  error("", "does not begin as an npy file");
  error("NUMPY", "does not begin as an npy file");
  error("\x93NUMPY", "cut off within its header");
  error(NpyOf("{}", kData, 4), "version 4");
  error(NpyOf("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", kData),
        "Fortran order; save numpy.ascontiguousarray");
  error(Npy(">f4", "(2, 3)", kData), "big-endian; save it as array.astype('<f4')");
  error(Npy("<V2", "(2, 3)", std::string(12, 'x')), "may be bfloat16");
  error(Npy("<U5", "(2,)", std::string(40, 'x')), "a text file of one value a line");
  error(Npy("|O", "(2,)", "x"), "text or objects");
  error(Npy("<c8", "(3,)", kData), "its dtype is <c8, not one of");
  error(Npy("<f4\n\x1b[31m", "(6,)", kData), "its dtype is <f4\\n\\033[31m, not one of");
  error(Npy(std::string(5000, 'f'), "(6,)", kData), std::string(100, 'f') + "..., not one of");
  error(Npy("<f4", "(2, 4)", kData), "has 32 bytes, and behind the header are 24; it was cut off");
  error(Npy("<f4", "(2, 2)", kData), "has 16 bytes, and behind the header are 24");
  error(Npy("<f4", "(4294967296, 4294967296)", kData), "more than 2^64 bytes");
  for (const char* nonsense :
       {"", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 'x'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x"}) {
    INFO(nonsense);
    error(NpyOf(nonsense, kData), "save one plain array of numbers");
  }
  std::string huge = NpyOf("{'descr': '<f4'}", kData, 2);
  huge.replace(8, 4, "\xff\xff\xff\xff");
  error(huge, "its header has 4294967295 bytes");
}

TEST_CASE("safetensors files say where their tensors are", "[import]") {
  const std::string file = Safetensors("{\"__metadata__\": {\"format\": \"pt\"}, " +
                                           Tensor("b", "F32", "[2, 2]", 8, 24) + ", " +
                                           Tensor("a", "BF16", "[4]", 0, 8) + "}",
                                       kData);
  const auto places = Tensors(file);
  REQUIRE(places.ok());
  REQUIRE(places->size() == 2);
  CHECK((*places)[0].tensor == "a");
  CHECK((*places)[0].type == ElementType::kBfloat16);
  CHECK((*places)[1].tensor == "b");
  CHECK(file.substr((*places)[1].offset, (*places)[1].bytes) == kData.substr(8));
  // Of dtypes that nobody reads here nothing is asked.
  CHECK(TensorsError(Safetensors("{" + Tensor("x", "F8_E4M3", "[3]", 0, 3) + "}", kData)) == "");
}

TEST_CASE("hostile headers of safetensors are refused", "[import]") {
  const auto error = [](const std::string& file, const std::string& says) {
    CHECK_THAT(TensorsError(file), Catch::Contains(says));
  };
  const auto one = [](const std::string& tensor) { return Safetensors("{" + tensor + "}", kData); };
  error("", "neither an npy nor a safetensors file");
  error("1234567", "neither an npy nor a safetensors file");
  error(std::string(8, '\xff') + "{}", "its header had 18446744073709551615 bytes");
  std::string longer = Safetensors("{}", "");
  longer[0] = 100;
  error(longer, "its header had 100 bytes, and the file has 10");
  error(Safetensors(std::string((16 << 20) + 1, ' '), ""), "more than 16777216 are refused");
  for (const char* nonsense : {"", "x", "[]", "{", "{\"a\": }", "\xff\xfe", "nul", "17"}) {
    INFO(nonsense);
    error(Safetensors(nonsense, kData), "is no JSON object");
  }
  error(one("\"a\": 3"), "says of tensor 'a' nothing but a value");
  error(one("\"a\": {}"), "no dtype");
  error(one("\"a\": {\"dtype\": 4}"), "no dtype");
  error(one(Tensor("a", "F32", "3", 0, 24)), "no shape of whole numbers");
  error(one(Tensor("a", "F32", "[-2, 3]", 0, 24)), "no shape of whole numbers");
  error(one(Tensor("a", "F32", "[2.0, 3]", 0, 24)), "no shape of whole numbers");
  error(one(Tensor("a", "F32", "[[[[[[6]]]]]]", 0, 24)), "is nested deeper than");
  error(one(Tensor("a", "F32", "[[6]]", 0, 24)), "no shape of whole numbers");
  error(one(Tensor("[[[[[[", "F32", "[[6]]", 0, 24)), "no shape of whole numbers");
  error(one(Tensor("a", "F32", "[2, 3]", 24, 0)), "no data_offsets of a beginning and an end");
  error(one("\"a\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [-8, 16]}"),
        "no data_offsets");
  error(one("\"a\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [0]}"),
        "no data_offsets");
  error(one(Tensor("a", "F32", "[2, 3]", 4, 28)), "its bytes end at 28, and the file has 24");
  error(one(Tensor("a", "F32", "[2, 3]", 0, ~uint64_t{0})), "its bytes end at");
  error(one(Tensor("a", "F32", "[2, 2]", 0, 24)), "has 24 bytes, which F32 (2, 2) has not");
  error(one(Tensor("a", "F32", "[4294967296, 4294967296, 3]", 0, 24)), "has 24 bytes, which F32");
  error(one(Tensor("a", "F32", "[4]", 0, 16) + ", " + Tensor("b", "F32", "[4]", 8, 24)),
        "has tensors 'a' and 'b' over each other");
  // A parser would keep the last one.
  const std::string whole = Tensor("a", "F32", "[6]", 0, 24);
  error(one(whole + ", " + Tensor("b", "F32", "[0]", 0, 0) + ", " + whole),
        "names tensor 'a' twice; save it anew");
  error(one(Tensor("\\u0061", "F32", "[3]", 0, 12) + ", " + Tensor("a", "F32", "[3]", 12, 24)),
        "names tensor 'a' twice");
  error(one("\"a\": {\"dtype\": \"I32\", \"dtype\": \"F32\", \"shape\": [6], "
            "\"data_offsets\": [0, 24]}"),
        "says 'dtype' twice of a tensor");
  error(Safetensors("{\"__metadata__\": {}, \"__metadata__\": {}}", ""),
        "names tensor '__metadata__' twice");
  CHECK(TensorsError(one(whole + ", \"dtype\": {\"dtype\": \"F32\", \"shape\": [0], "
                                 "\"data_offsets\": [0, 0]}")) == "");
  // Names are shown without what a terminal would obey, and not at any length.
  error(one(Tensor("\\u001b[31m", "F32", "[]", 0, 24)), "tensor '\\033[31m'");
  error(one(Tensor(std::string(5000, 'n'), "F32", "[]", 0, 24)), std::string(100, 'n') + "...'");
  // Neither depth nor number is any trouble.
  error(Safetensors(std::string(1 << 20, '['), kData), "is nested deeper than a tensor's shape");
  std::string many = "\"b\": {}";
  for (int i = 0; i < 300'000; ++i) many += ", \"a" + std::to_string(i) + "\": {}";
  error(one(many), "no dtype");
}

// Whatever is changed or left out, the answer is an error or lies within the file.
TEST_CASE("no bytes lead out of the file", "[import][seeds]") {
  const uint64_t seed = GENERATE(Catch::Generators::from_range(Seeds("array_headers")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> files = {
      Npy("<f4", "(2, 3)", kData), Safetensors("{" + Tensor("a", "F32", "[4]", 0, 16) + ", " +
                                                   Tensor("b", "I64", "[1]", 16, 24) + "}",
                                               kData)};
  const auto look = [](const std::string& file) {
    std::vector<ArrayPlace> places;
    if (const auto npy = ParseNpy(file, file.size()); npy.ok()) places.push_back(*npy);
    if (const auto tensors = Tensors(file); tensors.ok()) places = *tensors;
    for (const ArrayPlace& p : places) {
      REQUIRE(p.offset <= file.size());
      REQUIRE(p.bytes <= file.size() - p.offset);
      if (p.type != ElementType::kOther) {
        REQUIRE(ShapeBytes(p.shape, ElementBytes(p.type)) == p.bytes);
      }
    }
  };
  for (const std::string& file : files) {
    for (size_t length = 0; length < file.size(); ++length) {
      look(file.substr(0, length));
      CHECK((NpyError(file.substr(0, length)) != "" && TensorsError(file.substr(0, length)) != ""));
    }
    for (int round = 0; round < 20000; ++round) {
      std::string other = file;
      for (uint64_t n = 1 + random() % 4; n > 0; --n) {
        const char* const bytes = "0123456789,[](){}'\":<|fiu-";
        const size_t at = random() % (other.size() - kData.size());
        other[at] = random() % 2 == 0 ? static_cast<char>(random()) : bytes[random() % 26];
      }
      look(other);
    }
  }
}

}  // namespace
}  // namespace strata
