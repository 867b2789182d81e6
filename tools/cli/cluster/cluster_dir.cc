#include "tools/cli/cluster/cluster_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/cli/base/text_file.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json IdJson(const ProcessId& id) { return Json{{"pid", id.pid}, {"startTicks", id.start_ticks}}; }

ProcessId IdFrom(const Json& json) {
  return {json.at("pid").get<pid_t>(), json.at("startTicks").get<uint64_t>()};
}

absl::StatusOr<Json> ReadJson(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(path, ": is damaged"));
  return json;
}

// Kept until the process ends. ALREADY_EXISTS with that text: another process has it.
absl::Status LockFile(const std::string& path, const std::string& taken) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return FileError(path, errno);
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  close(file);
  return absl::AlreadyExistsError(taken);
}

}  // namespace

ClusterDir::ClusterDir(const std::string& dir) {
  std::error_code error;  // no working folder: what is done at the relative path says so
  const fs::path absolute = fs::absolute(dir.empty() ? "." : dir, error);
  path_ = (error ? fs::path(dir) : absolute).lexically_normal().string();
  if (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

std::string ClusterDir::LogPath(const std::string& name) const {
  return absl::StrCat(path_, "/logs/", name, ".log");
}
std::string ClusterDir::PidPath(const std::string& name) const {
  return absl::StrCat(path_, "/pids/", name, ".pid");
}
std::string ClusterDir::ProcessPath(const std::string& name) const {
  return absl::StrCat(path_, "/", name);
}
std::string ClusterDir::AddressPath() const { return absl::StrCat(path_, "/scheduler/address"); }
std::string ClusterDir::CertsPath() const { return absl::StrCat(path_, "/certs"); }

absl::Status ClusterDir::Make() const {
  for (const char* part : {"", "/logs", "/pids", "/scheduler"}) {
    std::error_code error;
    fs::create_directories(path_ + part, error);
    if (error) return FileError(path_ + part, error.value());
  }
  return absl::OkStatus();
}

absl::Status ClusterDir::Lock() const {
  return LockFile(path_ + "/lock", absl::StrCat("a cluster is running in ", path_,
                                                "; stop it with 'strata down --dir ", path_,
                                                "', or give another --dir"));
}

absl::Status ClusterDir::LockStart() const {
  return LockFile(path_ + "/starting",
                  absl::StrCat("a cluster is starting in ", path_,
                               "; wait until the other 'strata up' has ended, or give another "
                               "--dir"));
}

bool ClusterDir::IsLocked() const {
  const int file = open((path_ + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0;
  close(file);
  return locked;
}

absl::Status ClusterDir::WriteConfig(const ClusterConfig& config) const {
  const Json json = {{"binDir", config.bin_dir},
                     {"servers", config.servers},
                     {"workers", config.workers},
                     {"devices", config.devices},
                     {"workerDevices", config.worker_devices},
                     {"dataRoots", config.data_roots},
                     {"insecure", config.insecure},
                     {"zones", config.zones}};
  return WriteTextFile(path_ + "/cluster.json", absl::StrCat(json.dump(2), "\n"));
}

absl::StatusOr<ClusterConfig> ClusterDir::ReadConfig() const {
  const std::string path = path_ + "/cluster.json";
  absl::StatusOr<Json> json = ReadJson(path);
  if (!json.ok()) return json.status();
  try {
    return ClusterConfig{json->at("binDir").get<std::string>(),
                         json->at("servers").get<uint32_t>(),
                         json->at("workers").get<uint32_t>(),
                         json->value("devices", std::vector<std::string>()),
                         json->value("workerDevices", std::vector<std::string>()),
                         json->value("dataRoots", std::vector<std::string>()),
                         json->value("insecure", true),
                         json->value("zones", std::vector<std::string>())};
  } catch (const Json::exception&) {
    return absl::DataLossError(absl::StrCat(path, ": is damaged"));
  }
}

absl::Status ClusterDir::WriteState(const ClusterState& state) const {
  Json json = {{"supervisor", IdJson(state.supervisor)}, {"scheduler", state.scheduler}};
  json["processes"] = Json::array();
  for (const ProcessState& p : state.processes) {
    Json process = IdJson(p.id);
    process["name"] = p.name;
    process["restarts"] = p.restarts;
    process["trouble"] = p.trouble;
    json["processes"].push_back(std::move(process));
  }
  return WriteTextFile(path_ + "/state.json", absl::StrCat(json.dump(2), "\n"));
}

absl::StatusOr<ClusterState> ClusterDir::ReadState() const {
  const std::string path = path_ + "/state.json";
  absl::StatusOr<Json> json = ReadJson(path);
  if (!json.ok()) return json.status();
  try {
    ClusterState state{
        IdFrom(json->at("supervisor")), json->at("scheduler").get<std::string>(), {}};
    for (const Json& p : json->at("processes")) {
      state.processes.push_back({p.at("name").get<std::string>(), IdFrom(p),
                                 p.at("restarts").get<uint32_t>(),
                                 p.at("trouble").get<std::string>()});
    }
    return state;
  } catch (const Json::exception&) {
    return absl::DataLossError(absl::StrCat(path, ": is damaged"));
  }
}

void ClusterDir::RemoveState() const {
  unlink((path_ + "/state.json").c_str());
  std::error_code error;
  fs::directory_iterator it(path_ + "/pids", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".pid") unlink(it->path().c_str());
  }
}

}  // namespace strata
