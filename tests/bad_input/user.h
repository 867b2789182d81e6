// What a user has: the program `strata`, a folder, small data files and job files. Each object has
// a folder of its own; nothing is shared, and nothing listens on a fixed port.
#ifndef STRATA_TESTS_BAD_INPUT_USER_H_
#define STRATA_TESTS_BAD_INPUT_USER_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace strata {

struct ProgramResult {
  int exit_code = -1;  // 124: it hung and was ended; 1000: a signal ended it
  std::string out, err;
};

// One user's folder. One thread.
class User {
 public:
  User() = default;
  ~User();  // ends the cluster, if one was started, and removes the folder
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  const std::string& folder() const { return folder_.path(); }
  // Absolute path of a name in the folder.
  std::string Path(const std::string& name) const { return folder() + "/" + name; }
  void Write(const std::string& name, const std::string& text) const;
  std::string Read(const std::string& name) const;

  // Runs `strata ARGUMENTS`, as a shell splits them, in the folder. It has 60 seconds.
  ProgramResult Strata(const std::string& arguments) const;
  // The same as somebody to whom files of mode 0 are closed, which to root they are not. Nothing
  // where this test may not give up root's rights.
  std::optional<ProgramResult> StrataWithoutPrivileges(const std::string& arguments) const;
  // The same as Strata with one of the daemons: "scheduler", "server" or "worker".
  ProgramResult Daemon(const std::string& role, const std::string& arguments) const;
  // Starts `strata ARGUMENTS`, waits until its stderr has held `marker`, runs `then`, which may run
  // other commands, and waits for the end.
  ProgramResult Interrupted(const std::string& arguments, const std::string& marker,
                            const std::function<void(const User&, pid_t)>& then) const;

  // Makes the folder `bin` for `up --bin-dir bin`; a cluster in `run` is ended with this.
  void LinkPrograms();
  // `strata up` in the folder: one server, two workers, unless told otherwise. It must succeed.
  ProgramResult Up(const std::string& arguments = "--servers 1 --workers 2");
  // Process id of a process of `up`, as in "scheduler".
  pid_t PidOf(const std::string& name) const;
  // host:port of the scheduler.
  std::string Scheduler() const;

  // job.yaml: an lr over train.libfm without held-out files, four lanes of 8, with
  // `more` appended to spec (lines indented by two).
  void WriteJob(const std::string& more = "") const;

 private:
  const TempFolder folder_;
  bool up_ = false;
};

// `lines` good lines of libfm.
std::string GoodLines(int lines);

// Path of a program of ours: "tools/cli/strata".
std::string ProgramPath(const std::string& target);

// An error for people: it says what is asked for, nothing of our source, no status code, no
// stack trace. The text of what is wrong, or "".
std::string WhatIsWrongWith(const std::string& message, const std::vector<std::string>& must_say);

// It ended with that code, and what it printed is right in that way.
void CheckSays(const ProgramResult& r, int exit_code, const std::vector<std::string>& says);

// It ended with that code, and what it printed has one line of an error, of a command or of a job,
// which is right in that way.
void CheckOneLine(const ProgramResult& r, int exit_code, const std::vector<std::string>& says);

// The line of a job's error in what a command said, of the form "job job failed: ...".
std::string FailureOf(const ProgramResult& result);

// `strata COMMAND` ends with code 1, and the job's error is right in that way.
void CheckRefused(const User& user, const std::string& command,
                  const std::vector<std::string>& says);

}  // namespace strata

#endif  // STRATA_TESTS_BAD_INPUT_USER_H_
