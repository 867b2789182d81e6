// Arrays as numpy and safetensors write them, byte by byte.
#ifndef STRATA_TESTS_TOOLS_CLUSTER_IMPORT_WRITTEN_ARRAYS_H_
#define STRATA_TESTS_TOOLS_CLUSTER_IMPORT_WRITTEN_ARRAYS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace strata::testing {

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// `dict`: "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
inline std::string NpyOf(const std::string& dict, const std::string& data, char version = 1) {
  std::string header = dict;
  const size_t prefix = version == 1 ? 10 : 12;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header.push_back('\n');
  std::string out = "\x93NUMPY";
  out.push_back(version);
  out.push_back('\0');
  for (size_t i = 8; i < prefix; ++i) {
    out.push_back(static_cast<char>(header.size() >> (8 * (i - 8)) & 255));
  }
  return out + header + data;
}

inline std::string Npy(const std::string& descr, const std::string& shape,
                       const std::string& data) {
  return NpyOf("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }",
               data);
}

inline std::string Safetensors(const std::string& json, const std::string& data) {
  const uint64_t length = json.size();
  return BytesOf(std::vector<uint64_t>{length}) + json + data;
}

// `"item": {"dtype": "F32", ...}`.
inline std::string Tensor(const std::string& name, const std::string& dtype,
                          const std::string& shape, uint64_t begin, uint64_t end) {
  return "\"" + name + "\": {\"dtype\": \"" + dtype + "\", \"shape\": " + shape +
         ", \"data_offsets\": [" + std::to_string(begin) + ", " + std::to_string(end) + "]}";
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_TOOLS_CLUSTER_IMPORT_WRITTEN_ARRAYS_H_
