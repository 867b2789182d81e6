// Ports, folders, disks and peers that cannot be used, as a user meets them.
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/skip.h"

namespace strata {
namespace {

// A disk of so many KiB in the user's folder; not mounted where that is not allowed.
class SmallDisk {
 public:
  SmallDisk(const User& user, int kibibytes) : path_(user.Path("disk")) {
    std::filesystem::create_directory(path_);
    const std::string size = "size=" + std::to_string(kibibytes) + "k";
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  void MakeReadOnly() const {
    REQUIRE(mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0);
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

constexpr char kNoMount[] = "mounting a small disk needs root";

// A user with a cluster of one server and two workers, which cases share that leave it as it was.
User& UserWithCluster() {
  static User user;
  static const bool up = user.Up().exit_code == 0;
  REQUIRE(up);
  return user;
}

TEST_CASE("a port that is taken is told, and what to do", "[bad_input]") {
  User& user = UserWithCluster();
  const std::string address = user.Scheduler();
  const std::vector<std::string> says = {"\"" + address + "\": Address already in use",
                                         "choose another one or port 0"};
  CheckSays(user.Daemon("scheduler", "--dir s --listen " + address), 1, says);
  CheckSays(user.Daemon("server", "--dir t --scheduler " + address + " --listen " + address), 1,
            says);
  const std::string metrics = " --metrics-listen " + address;
  CheckSays(user.Daemon("worker", "--dir u --scheduler " + address + metrics), 1,
            {"--metrics-listen " + address + " cannot be listened on",
             "choose another port, or 0 for any"});
}

TEST_CASE("nothing listens beyond loopback without --insecure", "[bad_input]") {
  User user;
  const auto refused = [&](const std::string& role, const std::string& option) {
    INFO(role);
    CheckSays(user.Daemon(role, "--dir " + role + " " + option + " 0.0.0.0:0"), 2,
              {option + ": refusing to listen on \"0.0.0.0:0\"", "reached from other machines",
               "listen on 127.0.0.1", "--insecure"});
  };
  for (const char* role : {"scheduler", "server"}) {
    refused(role, "--listen");
    CHECK_FALSE(std::filesystem::exists(user.Path(role)));
  }
  for (const char* role : {"scheduler", "server", "worker"}) refused(role, "--metrics-listen");
}

TEST_CASE("with --insecure all that a cluster listens on is open to every address", "[bad_input]") {
  User user;
  const auto start = [&](const std::string& role, const std::string& more,
                         const std::string& last = "--insecure") {
    return testing::ChildProcess(
        {ProgramPath(role + "/strata-" + role), "--dir=" + user.Path(role), "--listen=0.0.0.0:0",
         "--metrics-listen=0.0.0.0:0", "--address-file=" + user.Path(role + ".address"),
         "--insecure", more, last},
        user.Path(role + ".log"), user.folder());
  };
  // 127.0.0.2 reaches what listens on every address, and not what listens on 127.0.0.1. Those that
  // tell the scheduler where they are say by which address of theirs they reach it.
  const auto elsewhere = [&](const std::string& role, const std::string& told) {
    testing::AwaitThat("address of the " + role,
                       [&] { return std::filesystem::exists(user.Path(role + ".address")); });
    const std::string address = user.Read(role + ".address");
    CHECK(address.rfind(told + ":", 0) == 0);
    return "127.0.0.2:" + std::to_string(std::atoi(address.c_str() + address.rfind(':') + 1));
  };
  testing::ChildProcess scheduler = start("scheduler", "--lease-ms=10000");
  const std::string address = elsewhere("scheduler", "0.0.0.0");
  testing::ChildProcess server = start("server", "--scheduler=" + address);
  CHECK(elsewhere("server", "127.0.0.1") != address);
  const auto told = [&](const std::string& host) {
    testing::AwaitThat("addresses at " + host, [&] {
      const ProgramResult status = user.Strata("status --json --scheduler " + address);
      REQUIRE(status.exit_code == 0);
      return status.out.find("\"dataAddress\":\"" + host + ":") != std::string::npos &&
             status.out.find("\"metricsAddress\":\"" + host + ":") != std::string::npos;
    });
  };
  told("127.0.0.1");
  server.Signal(SIGTERM);
  CHECK(server.Wait() == 0);
  std::filesystem::remove(user.Path("server.address"));
  testing::ChildProcess again = start("server", "--scheduler=" + address, "--advertise=127.0.0.3");
  elsewhere("server", "127.0.0.3");
  told("127.0.0.3");
  for (testing::ChildProcess* process : {&again, &scheduler}) {
    process->Signal(SIGTERM);
    CHECK(process->Wait() == 0);
  }
}

TEST_CASE("an address that nobody could reach is not advertised", "[bad_input]") {
  User user;
  CheckSays(user.Daemon("server", "--dir s --advertise 10.0.0.1"), 2,
            {"--advertise 10.0.0.1", "--listen 127.0.0.1:0", "listen on 0.0.0.0 with --insecure"});
  CheckSays(user.Daemon("server", "--dir s --listen 0.0.0.0:0 --insecure --advertise 0.0.0.0"), 2,
            {"--advertise \"0.0.0.0\" is not a host that others could reach"});
  for (const char* role : {"server", "worker"}) {
    CheckSays(
        user.Daemon(role, std::string("--dir s --insecure --scheduler no.such.host.invalid:7 ") +
                              (role[0] == 's' ? "--listen" : "--metrics-listen") + " 0.0.0.0:0"),
        1, {"--scheduler no.such.host.invalid:7", "give --advertise HOST"});
  }
}

TEST_CASE("a process whose name another takes ends and says so, and gets it back from up",
          "[bad_input]") {
  User user;
  user.Up("--servers 1 --workers 1");
  // The intruder replaces worker-0, which ends; `up` starts it again, and that replaces the
  // intruder.
  CheckSays(user.Daemon("worker",
                        "--dir w --name worker-0 --certs run/certs/worker/worker-0/current"
                        " --scheduler " +
                            user.Scheduler()),
            1, {"name worker-0 is held by a newer process", "give it another name"});
  // A server also logs warnings there; what it says of its end is the last line.
  ProgramResult server =
      user.Daemon("server",
                  "--dir s --name server-0 --certs run/certs/server/server-0/current"
                  " --scheduler " +
                      user.Scheduler());
  server.err.erase(0, server.err.rfind("strata-server: "));
  CheckSays(server, 1, {"name server-0 is held by a newer process", "give it another name"});
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  CHECK(user.Strata("submit -f job.yaml --wait").exit_code == 0);
}

TEST_CASE("a folder that cannot be written is told by the field or option that names it",
          "[bad_input]") {
  User& user = UserWithCluster();
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  const std::string file = user.Path("job.yaml");
  for (const char* command : {"train", "submit --wait"}) {
    const std::string job = std::string(command) + " -f job.yaml --set ";
    CheckSays(user.Strata(job + "spec.checkpoint.directory=job.yaml/c"), 2,
              {"spec.checkpoint.directory " + file + "/c", "Not a directory"});
    CheckSays(user.Strata(job + "spec.checkpoint.directory=job.yaml"), 2,
              {"spec.checkpoint.directory " + file, "Not a directory"});
    CheckSays(user.Strata(job + "spec.checkpoint.directory=/proc/c"), 4,
              {"spec.checkpoint.directory /proc/c cannot be made"});
    CheckSays(user.Strata(job + "spec.storage.directory=job.yaml/s"), 1,
              {"job job failed: ", "spec.storage.directory", file + "/s", "Not a directory"});
    CheckSays(user.Strata(job + "spec.output.metrics=/proc/m"), 1,
              {"job job failed: ", "spec.output.metrics: cannot write /proc/m"});
  }
  CheckSays(user.Strata("up --dir job.yaml --bin-dir bin"), 2, {file + ": Not a directory"});
  for (const char* role : {"scheduler", "server", "worker"}) {
    CheckSays(user.Daemon(role, "--dir /proc/s"), 1,
              {"--dir /proc/s cannot be written", "name a folder that this user may write to"});
  }
}

TEST_CASE(
    "an output that is what the job reads or writes elsewhere is refused before anything is run",
    "[bad_input]") {
  User& user = UserWithCluster();
  const std::string lines = GoodLines(50);
  user.Write("train.libfm", lines);
  user.WriteJob();
  const std::string data = user.Path("train.libfm"), job = user.Read("job.yaml");
  std::filesystem::create_directory_symlink(user.folder(), user.Path("here"));
  std::filesystem::create_hard_link(data, user.Path("hard"));
  for (const char* name : {"p.next", "p.next.tmp"}) user.Write(name, lines);
  for (const char* command : {"validate", "train", "submit --wait"}) {
    const auto run = [&](const std::string& set) {
      return user.Strata(std::string(command) + " -f job.yaml --set " + set);
    };
    for (const char* name : {"train.libfm", "here/train.libfm", "x/../train.libfm", "hard"}) {
      CheckSays(run(std::string("spec.output.metrics=") + name), 2,
                {"spec.output.metrics", "spec.data.train[0] " + data, "is the same file as"});
    }
    CheckSays(run("spec.data.eval=train.libfm --set spec.output.predictions=here/job.yaml"), 2,
              {"spec.output.predictions", user.Path("job.yaml"), "the job file"});
    CheckSays(run("spec.data.eval=train.libfm --set spec.output.predictions=p --set "
                  "spec.output.metrics=here/p"),
              2, {"spec.output.metrics", "spec.output.predictions", user.Path("p")});
    for (const char* name : {"p.next", "here/p.next.tmp"}) {
      CheckSays(run(std::string("spec.data.eval=") + name + " --set spec.output.predictions=p"), 2,
                {"spec.output.predictions: " + user.Path("p.next"), "spec.data.eval[0]",
                 "is the same file as"});
    }
    // The servers' folder is told by its name alone where they have it.
    CheckSays(run("spec.checkpoint.directory=both --set spec.storage.directory=x/../both"), 2,
              {"spec.checkpoint.directory", "spec.storage.directory", user.Path("both")});
    if (std::string(command) == "submit --wait") continue;
    CheckSays(run("spec.checkpoint.directory=both --set spec.storage.directory=here/both"), 2,
              {"spec.checkpoint.directory", "spec.storage.directory", user.Path("both")});
  }
  for (const char* name : {"p.next", "p.next.tmp"}) CHECK(user.Read(name) == lines);
  CHECK(user.Read("train.libfm") == lines);
  CHECK(user.Read("job.yaml") == job);
  CHECK_FALSE(std::filesystem::exists(user.Path("both")));
  for (const char* made : {"here", "hard"}) std::filesystem::remove(user.Path(made));
}

TEST_CASE("a read-only disk is told and denied", "[bad_input]") {
  User user;
  SmallDisk disk(user, 256);
  if (!disk.mounted()) STRATA_SKIP(kNoMount);
  disk.MakeReadOnly();
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  CheckSays(user.Strata("train -f job.yaml --set spec.checkpoint.directory=disk/c"), 4,
            {"spec.checkpoint.directory " + user.Path("disk/c"), "Read-only file system"});
  CheckSays(user.Strata("train -f job.yaml --set spec.storage.directory=disk/s"), 1,
            {"job job failed: ", user.Path("disk/s"), "Read-only file system"});
  CheckSays(user.Strata("up --dir disk/run --bin-dir bin"), 2, {"no program"});
}

TEST_CASE("a disk that is full at a checkpoint is waited for, and what was whole stays",
          "[bad_input]") {
  User user;
  SmallDisk disk(user, 96);
  if (!disk.mounted()) STRATA_SKIP(kNoMount);
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob("  checkpoint: {directory: disk/c}\n");
  REQUIRE(user.Strata("train -f job.yaml").exit_code == 0);
  const std::string before = user.Strata("checkpoint verify disk/c").out;
  user.Write("disk/room", std::string(4096, 'x'));  // for the directory's lock alone
  std::string filler(96 << 10, 'x');
  user.Write("disk/filler", filler);  // as much as fits
  std::filesystem::remove(user.Path("disk/room"));
  std::string meanwhile;
  const ProgramResult trained =
      user.Interrupted("train -f job.yaml --resume --set spec.training.epochs=2",
                       "CheckpointFailed: ", [&meanwhile](const User& u, pid_t) {
                         meanwhile = u.Strata("checkpoint verify disk/c").out;
                         std::filesystem::remove(u.Path("disk/filler"));
                       });
  CheckSays(trained, 0,
            {"CheckpointFailed: spec.checkpoint.directory: " + user.Path("disk/c/step-"),
             "server-0: cannot ", "No space left on device", "free disk space",
             "the job waits for this checkpoint, and tries again in "});
  CHECK(meanwhile == before);
  CHECK(user.Strata("checkpoint verify disk/c").out != before);
}

TEST_CASE("a scheduler that nobody reaches is exit code 3", "[bad_input]") {
  // Nothing listens on port 1 of loopback. Each looks for it for some seconds, beside the other.
  const std::string commands[] = {"submit --wait -f job.yaml", "checkpoint create job"};
  User users[2];
  ProgramResult results[2];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    users[i].Write("train.libfm", GoodLines(50));
    users[i].WriteJob();
    threads.emplace_back(
        [&, i] { results[i] = users[i].Strata(commands[i] + " --scheduler 127.0.0.1:1"); });
  }
  for (std::thread& t : threads) t.join();
  for (const ProgramResult& r : results) CheckSays(r, 3, {"no scheduler answers at 127.0.0.1:1"});
}

TEST_CASE("what is asked of a cluster and is not there is told", "[bad_input]") {
  User user;
  user.Up();
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  for (const char* command : {"status none", "cancel none", "checkpoint create none",
                              "checkpoint list --job none", "predict --job none train.libfm"}) {
    CheckSays(user.Strata(command), 2, {"no job named \"none\""});
  }
  CheckSays(user.Strata("logs none"), 2, {"no process 'none'", "there are: scheduler"});
  CheckSays(user.Strata("up --dir run --bin-dir bin"), 2,
            {"a cluster is running in " + user.Path("run"), "strata down --dir"});
  // More servers than there are: it waits, and says why; its name is taken while it does.
  CHECK(user.Strata("submit -f job.yaml --set spec.replicas.servers=3").exit_code == 0);
  CheckSays(user.Strata("submit -f job.yaml --wait --timeout 0.2"), 2,
            {"job job is not finished; cancel it first or give metadata.name another value"});
  CheckSays(user.Strata("status job"), 0, {"pending", "waiting for servers: 3 wanted, 1 there"});
  CheckSays(user.Strata("cancel job"), 0, {"job job cancelled"});
  CheckSays(user.Strata("cancel job"), 0, {"job job cancelled"});
  CheckSays(
      user.Strata("submit -f job.yaml --wait --timeout 0.2 --set spec.replicas.workers=3"), 5,
      {"waiting for workers: 3 wanted, 2 there", "not at its end after", "strata cancel job"});
  CheckSays(user.Strata("down --dir run"), 0, {"is down"});
  CheckSays(user.Strata("down --dir run"), 2, {"no cluster is running in"});
}

TEST_CASE("a disk that is full where a server keeps its files is waited for, and the job says why",
          "[bad_input]") {
  User& user = UserWithCluster();
  SmallDisk disk(user, 8192);
  if (!disk.mounted()) STRATA_SKIP(kNoMount);
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  const std::string filler(8192 << 10, 'x');
  user.Write("disk/filler", filler);  // as much as fits
  CheckSays(user.Interrupted(
                "submit --wait -f job.yaml --set spec.storage.directory=disk/s", "ServerWaits: ",
                [](const User& u, pid_t) { std::filesystem::remove(u.Path("disk/filler")); }),
            0, {"server-0: ", user.Path("disk/s"), "No space left on device", "job job succeeded"});
}

TEST_CASE("a scheduler that goes mid-run stops nothing, and its watcher waits", "[bad_input]") {
  User user;
  user.Up();
  user.Write("train.libfm", GoodLines(20000));
  user.WriteJob();
  const std::string job = " -f job.yaml --set spec.training.epochs=3";
  const ProgramResult alone = user.Strata("train --json" + job);
  const ProgramResult r = user.Interrupted(
      "submit --wait --json" + job,
      "Training: ", [](const User& u, pid_t) { kill(u.PidOf("scheduler"), SIGKILL); });
  CheckSays(r, 0, {"the scheduler does not answer", "the job goes on", "answers again"});
  const auto hash = [](const std::string& json) {
    const size_t at = json.find("\"modelHash\"");
    return at == std::string::npos ? json : json.substr(at, 46);
  };
  CHECK(hash(r.out) == hash(alone.out));
}

// The processes of `up` come back by themselves, so these are started without it.
TEST_CASE("a server that is gone is named to who waits for it, and the job can be cancelled",
          "[bad_input]") {
  User user;
  testing::ProcessCluster cluster(
      {.servers = 1, .workers = 1, .folder = user.Path("cluster"), .lease_ms = 1000});
  user.Write("train.libfm", GoodLines(10000));
  user.WriteJob();
  const std::string at = " --scheduler " + cluster.address();
  const std::string submit = "submit --wait --timeout 5 -f job.yaml --set spec.training.epochs=";
  CheckSays(user.Interrupted(submit + "100000" + at,
                             "Training: ", [&](const User&, pid_t) { cluster.Kill("server-0"); }),
            5, {"server server-0", "not at its end after", "strata cancel job"});
  CheckSays(user.Strata("status job" + at), 0, {"job job running", "server server-0"});
  CheckSays(user.Strata("cancel job" + at), 0, {"job job cancelled"});
  // Once it is back it serves the next job, and keeps nothing of the other one.
  cluster.Start("server-0");
  CHECK(user.Strata("submit --wait --timeout 50 -f job.yaml" + at).exit_code == 0);
}

TEST_CASE("Ctrl-C keeps what was trained, or detaches from it", "[bad_input]") {
  User& user = UserWithCluster();
  user.Write("train.libfm", GoodLines(10000));
  user.WriteJob("  checkpoint: {directory: c}\n");
  user.Write("my job's.yaml", user.Read("job.yaml"));
  const std::string epochs = " --set spec.training.epochs=50";
  const auto interrupt = [](const User&, pid_t pid) { kill(pid, SIGINT); };
  const auto train = [&](const std::string& arguments) {
    const ProgramResult r = user.Interrupted("train" + arguments, "Training: ", interrupt);
    CheckSays(r, 130, {"Interrupted at step", "checkpoint " + user.Path("c/step-")});
    const std::string start = "Go on with: strata train";
    const size_t at = r.err.find(start);
    REQUIRE(at != std::string::npos);
    return r.err.substr(at + start.size(), r.err.find('\n', at) - at - start.size());
  };
  // What is printed goes on when it is typed, and says the same again.
  const std::string line =
      train(" -f \"my job's.yaml\" --set \"spec.output.metrics=it's here\"" + epochs);
  CHECK(line ==
        " -f 'my job'\\''s.yaml' --set 'spec.output.metrics=it'\\''s here'" + epochs + " --resume");
  CHECK(train(line) == line);
  CHECK(std::filesystem::exists(user.Path("it's here")));
  CheckSays(
      user.Interrupted("submit --wait --resume -f job.yaml" + epochs, "Training: ", interrupt), 130,
      {"Detached. The job goes on.", "strata status job --watch", "strata cancel job"});
  CheckSays(user.Strata("status job"), 0, {"job job running"});
  CheckSays(user.Strata("cancel job"), 0, {"job job cancelled"});
}

}  // namespace
}  // namespace strata
