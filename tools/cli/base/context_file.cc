#include "tools/cli/base/context_file.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/cli/base/text_file.h"

namespace strata {

namespace fs = std::filesystem;

std::string ContextPath() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config != '\0') return absl::StrCat(config, "/strata/context.json");
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "" : home, "/.config/strata/context.json");
}

absl::StatusOr<Context> ReadContext() {
  const std::string path = ContextPath();
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        "no cluster is known here; start one with 'strata up', or name one with --scheduler "
        "HOST:PORT");
  }
  if (!text.ok()) return text.status();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("scheduler") || !json["scheduler"].is_string() ||
      !json.contains("dir") || !json["dir"].is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is damaged; remove it, or name the cluster with --scheduler"));
  }
  return Context{json["scheduler"].get<std::string>(), json["dir"].get<std::string>()};
}

absl::Status WriteContext(const Context& context) {
  const std::string path = ContextPath();
  const nlohmann::ordered_json json = {{"scheduler", context.scheduler}, {"dir", context.dir}};
  return WriteTextFile(path, absl::StrCat(json.dump(2), "\n"));
}

absl::Status RemoveContext(const std::string& dir) {
  absl::StatusOr<Context> context = ReadContext();
  if (!context.ok() || context->dir != dir) return absl::OkStatus();
  std::error_code error;
  fs::remove(ContextPath(), error);
  if (error) return absl::InternalError(absl::StrCat(ContextPath(), ": ", error.message()));
  return absl::OkStatus();
}

absl::StatusOr<std::string> SchedulerAddress(const std::string& given) {
  if (!given.empty()) {
    if (given.find(':') == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--scheduler ", given, ": expects HOST:PORT, as in 127.0.0.1:7400"));
    }
    return given;
  }
  absl::StatusOr<Context> context = ReadContext();
  if (!context.ok()) return context.status();
  return context->scheduler;
}

}  // namespace strata
