// Whole files as bytes, for tests that damage them.
#ifndef STRATA_TESTS_STORAGE_IO_FILE_BYTES_H_
#define STRATA_TESTS_STORAGE_IO_FILE_BYTES_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace strata::storage {

using Bytes = std::vector<uint8_t>;

inline Bytes ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

// A new file each time: some file systems flush one that is truncated and written again.
inline void WriteFile(const std::string& path, const Bytes& bytes) {
  std::filesystem::remove(path);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_IO_FILE_BYTES_H_
