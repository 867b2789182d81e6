#include "server/snapshot/image_files.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"

namespace strata::server {
namespace {

std::optional<ImageName> ParseName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "image-") || !absl::ConsumeSuffix(&name, ".strata")) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '-');
  ImageName image;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &image.shard.value) ||
      !absl::SimpleAtoi(parts[1], &image.clock.value)) {
    return std::nullopt;
  }
  return image;
}

}  // namespace

std::string ImageFileName(const ImageName& name) {
  return absl::StrFormat("image-%d-%020d.strata", name.shard.value, name.clock.value);
}

absl::StatusOr<std::vector<ImageName>> ListImages(const std::string& folder) {
  std::vector<ImageName> images;
  const auto listed = ListFolder(folder);
  if (absl::IsNotFound(listed.status())) return images;
  if (!listed.ok()) return listed.status();
  for (const std::string& text : *listed) {
    if (auto name = ParseName(text)) images.push_back(*name);
  }
  std::sort(images.begin(), images.end(), [](const ImageName& a, const ImageName& b) {
    return std::tie(a.shard, b.clock) < std::tie(b.shard, a.clock);
  });
  return images;
}

void RemoveOldImages(const std::string& folder) {
  const auto images = ListImages(folder);
  if (!images.ok()) return;
  for (size_t i = 1; i < images->size(); ++i) {
    if ((*images)[i].shard != (*images)[i - 1].shard) continue;
    if (!Failpoint("server.image.remove").ok()) return;  // what stays goes with the next image
    FileSystem::Kernel().Remove(absl::StrCat(folder, "/", ImageFileName((*images)[i])));
  }
}

}  // namespace strata::server
