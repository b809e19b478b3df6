// Restarts where the other process does not come up, or dies: the old one goes on as it was, and keeps nothing of it.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include "tests/cli/process.hpp"
#include "tests/cli/restarts.hpp"

namespace wirecall::cli {
namespace {

TEST_F(Restart, one_that_does_not_come_up_leaves_the_old_process_as_it_was) {
  const std::string config = folder_.path + "/wirecall.toml";
  std::ofstream{config} << "drain_ms = 1000\n";
  Restarted server{serve({"-c", config})};
  server.first().read_error_until("Methods:");
  std::ofstream{config} << "drain_mss = 1000\n";
  kill(server.pid(), SIGUSR2);
  const std::string log = server.first().read_error_until("it has ended with status 2");
  EXPECT_NE(log.find("there is no option drain_mss"), std::string::npos) << log;
  EXPECT_NE(log.find("no other process takes over, and this one goes on"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
  std::ofstream{config} << "drain_ms = 500\n";
  server.restart();
  EXPECT_TRUE(is_served());
  server.end();
}

TEST_F(Restart, the_old_process_goes_on_wherever_the_other_dies) {
  Process server{serve()};
  server.read_error_until("Methods:");
  using Step = void (*)(Rival&);
  const std::vector<Step> steps{[](Rival& rival) { rival.hello(); }, [](Rival& rival) { rival.sockets(); },
                                [](Rival& rival) { rival.ready(); }, [](Rival& rival) { rival.state(); }};
  for (std::size_t count = 0; count <= steps.size(); ++count) {
    {
      Rival rival{path()};
      for (std::size_t i = 0; i < count; ++i) steps[i](rival);
    }
    server.read_error_until("no other process takes over", static_cast<int>(count) + 1);
    EXPECT_TRUE(is_served()) << count;
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Restart, one_that_says_nothing_more_is_given_up_in_time) {
  Process server{serve({"--restart-ms", "50"})};
  server.read_error_until("Methods:");
  Rival before_ready{path()};
  before_ready.hello();
  EXPECT_EQ(before_ready.sockets().uris, std::vector{folder_.socket()});
  EXPECT_EQ(before_ready.descriptors(), 2U);  // the endpoint's, and that of restarts
  EXPECT_TRUE(before_ready.is_refused());
  Rival at_last{path()};
  at_last.hello();
  at_last.sockets();
  at_last.ready();
  at_last.state();
  EXPECT_TRUE(at_last.is_refused());
  const std::string log = server.read_error_until("did not answer in time", 2);
  EXPECT_NE(log.find("did not answer in time"), std::string::npos);
  EXPECT_TRUE(is_served());
}

// An attempt that fails leaves nothing open.
std::size_t descriptors_of(pid_t pid) {
  const std::filesystem::directory_iterator all{"/proc/" + std::to_string(pid) + "/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// A program that stands where another one stood when the server was started.
class OtherProgram : public Restart {
 protected:
  OtherProgram() { std::filesystem::create_symlink(WIRECALL_TOOL_PATH, program_); }
  void replace_by(const std::string& script) const {
    std::filesystem::remove(program_);
    if (script.empty()) return;
    std::ofstream{program_} << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }

  const std::string program_ = folder_.path + "/program";
};

TEST_F(OtherProgram, one_that_is_not_there_or_dies_or_hangs_leaves_the_old_process_as_it_was_and_nothing_open) {
  Process server{serve({"--restart-ms", "300"}), {}, {}, Process::Input::ends, program_};
  server.read_error_until("Methods:");
  Stock client{folder_.path + "/calls.sock"};  // the only one, so that the number of connections is the same
  const auto is_served = [&client] {
    client.send(R"({"jsonrpc":"2.0","method":"subtract","params":[5,3],"id":1})");
    return client.line() == R"({"jsonrpc":"2.0","result":2,"id":1})";
  };
  EXPECT_TRUE(is_served());
  struct Case {
    std::string script;
    std::string reason;
  };
  const std::vector<Case> cases{{"", "cannot be started: No such file or directory"},
                                {"kill -SEGV $$", "signal 11 has ended it"},
                                {"exit 3", "it has ended with status 3"},
                                {"exec sleep 1000", "did not answer in time; it was killed"},
                                {"", "cannot be started: No such file or directory"}};
  std::size_t open = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    replace_by(cases[i].script);
    server.signal(SIGUSR2);
    const std::string log =
        server.read_error_until("no other process takes over, and this one goes on", static_cast<int>(i) + 1);
    const std::string line = server.read_error_line(log.rfind("no other process takes over"));
    EXPECT_NE(line.find(cases[i].reason), std::string::npos) << line;
    EXPECT_TRUE(is_served()) << i;
    if (i == 0) open = descriptors_of(server.id());
  }
  EXPECT_EQ(descriptors_of(server.id()), open);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(OtherProgram, one_that_is_sent_sigusr2_while_it_starts_takes_over_all_the_same) {
  Process server{serve({"--restart-ms", "20000"}), {}, {}, Process::Input::ends, program_};
  server.read_error_until("Methods:");
  replace_by("kill -USR2 $$\nexec " WIRECALL_TOOL_PATH " \"$@\"");
  server.signal(SIGUSR2);
  server.read_error_until("this process has taken over");
  // It has been told as well, and starts another one.
  const std::string log = server.read_error_until("this process has taken over", 2);
  EXPECT_EQ(log.find("this one goes on"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
  const std::size_t at = log.rfind("another process is started to take over");
  const std::string line = server.read_error_line(at);
  pid_t last = 0;
  const std::size_t number = line.find("pid=");
  ASSERT_NE(number, std::string::npos) << line;
  std::from_chars(line.data() + number + 4, line.data() + line.size(), last);
  kill(last, SIGKILL);
}

TEST_F(Restart, no_descriptor_is_left_of_one_restart_in_the_next_process) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  const std::size_t open = descriptors_of(server.pid());
  for (int i = 0; i < 3; ++i) server.restart();
  EXPECT_EQ(server.first().wait(), 0);
  // The connection to its predecessor goes once that has ended.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (descriptors_of(server.pid()) != open && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(descriptors_of(server.pid()), open);
  server.end();
}

TEST_F(Restart, what_stands_where_its_socket_would_be_is_left_alone_and_the_server_serves) {
  make_runtime_folder();
  std::ofstream{folder_.path + "/precious"} << "kept";
  std::filesystem::create_symlink(folder_.path + "/precious", path());
  {
    Process server{serve()};
    const std::string log = server.read_error_until("Methods:");
    EXPECT_NE(log.find("no process can take over by --replace"), std::string::npos) << log;
    EXPECT_TRUE(is_served());
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(std::filesystem::file_size(folder_.path + "/precious"), 4U);
  // Nor is a folder used that others may write in.
  std::filesystem::remove(path());
  std::filesystem::permissions(folder_.path + "/wirecall", std::filesystem::perms::all);
  Process server{serve()};
  const std::string log = server.read_error_until("Methods:");
  EXPECT_NE(log.find("is not a folder of this user's alone"), std::string::npos) << log;
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace wirecall::cli
