#include "tools/cli/context/contexts.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/bind_policy.h"

namespace strata {
namespace {

absl::Status CheckFolder(absl::string_view field, const std::string& folder) {
  if (folder.empty() || std::filesystem::path(folder).is_absolute()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": '", ShownText(folder), "' is no absolute path; write the whole of it, from /"));
}

absl::Status NoSuchContext(absl::string_view name, const Contexts& contexts) {
  return absl::NotFoundError(absl::StrCat("there is no context '", ShownText(name),
                                          "'; there are: ", ContextNames(contexts),
                                          " (make one: strata context add)"));
}

absl::Status CheckContext(const Context& context) {
  if (absl::Status s = CheckIdentityName(context.name); !s.ok()) return s;
  if (absl::Status s = CheckSchedulerAddress(context.scheduler); !s.ok()) return s;
  if (absl::Status s = CheckFolder("certs", context.certs); !s.ok()) return s;
  return CheckFolder("folder", context.folder);
}

// Of a folder's last part: what a name may not have becomes '-'.
std::string NameFor(const std::string& folder) {
  std::string name = std::filesystem::path(folder).filename().string();
  name.resize(std::min(name.size(), size_t{40}));
  for (char& c : name) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c));
    if (!plain && c != '.' && c != '_') c = '-';
  }
  while (!name.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(name.front()))) {
    name.erase(0, 1);
  }
  return name.empty() ? "local" : name;
}

// The name becomes the current one, for as long as it is there.
void TakeOver(const std::string& name, Contexts& contexts) {
  std::erase(contexts.before, name);
  if (!contexts.current.empty() && contexts.current != name) {
    std::erase(contexts.before, contexts.current);
    contexts.before.push_back(contexts.current);
  }
  contexts.current = name;
}

}  // namespace

absl::Status CheckSchedulerAddress(const std::string& address) {
  for (const char c : address) {
    if (absl::ascii_isgraph(static_cast<unsigned char>(c))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("scheduler: address \"", ShownText(address),
                     "\" has a blank or a control character; expected host:port"));
  }
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("scheduler: ", parsed.status().message()));
  }
  if (parsed->port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("scheduler: address \"", address, "\" has port 0, where nobody listens"));
  }
  return absl::OkStatus();
}

const Context* FindContext(const Contexts& contexts, absl::string_view name) {
  for (const Context& c : contexts.all) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

std::string ContextNames(const Contexts& contexts) {
  if (contexts.all.empty()) return "none";
  return absl::StrJoin(contexts.all, ", ",
                       [](std::string* out, const Context& c) { out->append(c.name); });
}

absl::Status AddContext(Context context, Contexts& contexts) {
  if (absl::Status s = CheckContext(context); !s.ok()) return s;
  if (const Context* there = FindContext(contexts, context.name)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "there is a context '", context.name, "' already (scheduler ", there->scheduler,
        "); name another one, or remove it first: strata context remove ", context.name));
  }
  contexts.all.push_back(std::move(context));
  if (contexts.all.size() == 1) contexts.current = contexts.all[0].name;
  return absl::OkStatus();
}

absl::Status UseContext(absl::string_view name, Contexts& contexts) {
  if (FindContext(contexts, name) == nullptr) return NoSuchContext(name, contexts);
  contexts.current = std::string(name);
  std::erase(contexts.before, contexts.current);
  return absl::OkStatus();
}

absl::Status RemoveContext(absl::string_view name, Contexts& contexts) {
  if (FindContext(contexts, name) == nullptr) return NoSuchContext(name, contexts);
  std::erase_if(contexts.all, [&](const Context& c) { return c.name == name; });
  std::erase(contexts.before, name);
  if (contexts.current == name) contexts.current.clear();
  return absl::OkStatus();
}

absl::Status UseContextOfFolder(const std::string& folder, const std::string& scheduler,
                                const std::string& certs, Contexts& contexts) {
  Context made{"", scheduler, certs, folder};
  const std::string wanted = NameFor(folder);
  made.name = wanted;
  for (int number = 2; FindContext(contexts, made.name) != nullptr; ++number) {
    made.name = absl::StrCat(wanted, "-", number);
  }
  if (absl::Status s = CheckContext(made); !s.ok()) return s;
  for (Context& c : contexts.all) {
    if (c.folder != folder) continue;
    c.scheduler = scheduler;
    c.certs = certs;
    TakeOver(c.name, contexts);
    return absl::OkStatus();
  }
  TakeOver(made.name, contexts);
  contexts.all.push_back(std::move(made));
  return absl::OkStatus();
}

bool HasContextOfFolder(const Contexts& contexts, absl::string_view folder) {
  return std::any_of(contexts.all.begin(), contexts.all.end(),
                     [&](const Context& c) { return c.folder == folder; });
}

void RemoveContextOfFolder(absl::string_view folder, Contexts& contexts) {
  bool was_current = false;
  for (const Context& c : contexts.all) {
    if (c.folder != folder) continue;
    std::erase(contexts.before, c.name);
    was_current = was_current || c.name == contexts.current;
  }
  std::erase_if(contexts.all, [&](const Context& c) { return c.folder == folder; });
  if (!was_current) return;
  contexts.current.clear();
  if (contexts.before.empty()) return;
  contexts.current = contexts.before.back();
  contexts.before.pop_back();
}

}  // namespace strata
