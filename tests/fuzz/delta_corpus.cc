// Writes the corpus of delta_fuzz: delta_corpus FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/fuzz/delta_seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: delta_corpus FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  try {
    for (const auto& [name, bytes] : strata::storage::DeltaSeeds(folder)) {
      std::ofstream out(folder + "/" + name, std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
      if (!out.flush()) throw std::runtime_error("cannot write " + folder + "/" + name);
    }
    std::filesystem::remove(folder + "/delta");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "delta_corpus: %s\n", e.what());
    return 1;
  }
  return 0;
}
