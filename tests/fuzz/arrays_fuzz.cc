// libFuzzer target of the headers of npy and safetensors files: no crash, and whatever array one
// says that there is lies within the file and is as long as its shape.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/cluster/import/array_header.h"

namespace {

void Judge(const strata::ArrayPlace& place, size_t size) {
  const bool inside = place.offset <= size && place.bytes <= size - place.offset;
  const bool fits =
      place.type == strata::ElementType::kOther ||
      strata::ShapeBytes(place.shape, strata::ElementBytes(place.type)) == place.bytes;
  if (inside && fits) return;
  std::fprintf(stderr, "an array beyond its file or its shape\n");
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  if (const auto npy = strata::ParseNpy(file, size); npy.ok()) Judge(*npy, size);
  const auto length = strata::SafetensorsHeaderBytes(file, size);
  if (!length.ok()) return 0;
  const auto tensors = strata::ParseSafetensors(file.substr(8, *length), size);
  if (!tensors.ok()) return 0;
  for (const strata::ArrayPlace& place : *tensors) Judge(place, size);
  return 0;
}
