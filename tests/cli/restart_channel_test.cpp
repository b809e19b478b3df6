// Who speaks where a server waits for the process that is to take over from it: what is no message, what is too much,
// and other users.
#include "cli/restart/restart_channel.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cli/restart/restart_protocol.hpp"
#include "tests/cli/process.hpp"
#include "tests/cli/restarts.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

TEST_F(Restart, what_is_no_message_is_refused) {
  Process server{serve()};
  server.read_error_until("Methods:");
  // The head of a message: "WCRS", then so many descriptors and so many bytes of text.
  const auto head = [](std::uint32_t descriptors, std::uint64_t bytes) {
    const std::uint32_t magic = 0x57435253;
    std::string all(16, '\0');
    std::memcpy(all.data(), &magic, sizeof magic);
    std::memcpy(all.data() + 4, &descriptors, sizeof descriptors);
    std::memcpy(all.data() + 8, &bytes, sizeof bytes);
    return all;
  };
  const auto message = [&](const std::string& text) { return head(0, text.size()) + text; };
  const std::string hello = to_json(RestartHello{.restart = kRestartVersion, .pid = getpid()});
  const std::vector<std::string> wrong{
      std::string(4096, 'x'),                  // no head
      head(5000, 0),                           // more descriptors than there may be
      head(1, hello.size()) + "d" + hello,     // with a descriptor
      head(0, hello.size() + 1) + hello,       // cut off
      message("[]"),                           // another text
      message(std::string(200'000, '[')),      // one that nests too deep
      message(R"({"restart":1,"pid":1e99})"),  // out of range
      message(R"({"restart":99,"pid":123})"),  // of another version
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const runtime::Descriptor socket = connect_to(path());
    ASSERT_EQ(send(socket.get(), wrong[i].data(), wrong[i].size(), 0), static_cast<ssize_t>(wrong[i].size()));
    ::shutdown(socket.get(), SHUT_WR);
    server.read_error_until("no other process takes over, and this one goes on", static_cast<int>(i) + 1);
    EXPECT_TRUE(is_served()) << i;
  }
}

TEST_F(Restart, a_message_that_says_it_is_too_large_is_refused_before_it_comes) {
  Process server{serve()};
  server.read_error_until("Methods:");
  const runtime::Descriptor socket = connect_to(path());
  struct {
    std::uint32_t magic = 0x57435253;
    std::uint32_t descriptors = 0;
    std::uint64_t bytes = kRestartBytesMax + 1;
  } head;
  ASSERT_EQ(send(socket.get(), &head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
  const std::string log = server.read_error_until("no other process takes over, and this one goes on");
  const std::string line = server.read_error_line(log.rfind("no other process takes over"));
  EXPECT_NE(line.find("is not understood: is it wirecall?"), std::string::npos) << line;
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, of_another_process_no_descriptor_is_kept) {
  Process server{serve()};
  server.read_error_until("Methods:");
  const runtime::Descriptor socket = connect_to(path());
  // With each byte of a head come as many as one message may have.
  const std::string head = std::string{"SRCW"} + std::string(12, '\0');
  std::array<int, 250> all;
  all.fill(socket.get());
  std::size_t sent = 0;
  for (char byte : head) {
    iovec part{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof all)> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof all);
    std::memcpy(CMSG_DATA(control), all.data(), sizeof all);
    if (sendmsg(socket.get(), &message, MSG_NOSIGNAL) == 1) ++sent;
  }
  EXPECT_GT(sent, 0U);
  const std::string log = server.read_error_until("no other process takes over, and this one goes on");
  EXPECT_NE(server.read_error_line(log.rfind("no other process")).find("is not understood"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, without_descriptors_another_process_waits_until_there_are_some) {
  if (kAddressSanitizer) GTEST_SKIP() << kSanitizerNeedsDescriptors;
  Process server{serve()};
  server.read_error_until("Methods:");
  rlimit before{};
  ASSERT_EQ(prlimit(server.id(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit few{.rlim_cur = 8, .rlim_max = before.rlim_max};  // it has more
  ASSERT_EQ(prlimit(server.id(), RLIMIT_NOFILE, &few, nullptr), 0) << std::strerror(errno);
  Rival rival{path()};
  const std::string log = server.read_error_until("no other process takes over, and this one goes on");
  EXPECT_NE(server.read_error_line(log.rfind("no other process")).find("ulimit -n"), std::string::npos) << log;
  // It does not look for it all the time: from the first to the third attempt it hardly works.
  const auto worked = [&server] {
    std::string stat;
    std::getline(std::ifstream{"/proc/" + std::to_string(server.id()) + "/stat"}, stat);
    std::istringstream words{stat.substr(stat.rfind(')') + 2)};
    std::string word;
    for (int i = 0; i < 11; ++i) words >> word;
    long user = 0;
    long system = 0;
    words >> user >> system;
    return user + system;
  };
  const long began = worked();
  server.read_error_until("no other process takes over, and this one goes on", 3);
  EXPECT_LT(worked() - began, sysconf(_SC_CLK_TCK));
  ASSERT_EQ(prlimit(server.id(), RLIMIT_NOFILE, &before, nullptr), 0);
  rival.hello();
  EXPECT_EQ(rival.sockets().uris, std::vector{folder_.socket()});
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, what_is_said_to_who_hears_no_more_fails_and_what_was_said_before_holds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  RestartChannel hears{runtime::Descriptor{ends[0]}};
  RestartChannel says{runtime::Descriptor{ends[1]}};
  constexpr std::chrono::milliseconds kTime{30000};
  says.send("go", kTime);
  hears.end_input();
  EXPECT_THROW(says.send("go", kTime), RestartError);
  EXPECT_TRUE(hears.has_input());
  EXPECT_EQ(hears.receive(kTime, kRestartBytesMax).text, "go");
  EXPECT_FALSE(hears.has_input());
}

TEST_F(Restart, nobody_else_gets_the_sockets) {
  Process server{serve()};
  server.read_error_until("Methods:");
  using std::filesystem::perms;
  const std::filesystem::path file = path();
  EXPECT_EQ(std::filesystem::status(file.parent_path()).permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(file).permissions(), perms::owner_read | perms::owner_write);
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  // As if the permissions were wrong.
  for (const std::filesystem::path& open : {std::filesystem::path{folder_.path}, file.parent_path(), file})
    std::filesystem::permissions(open, perms::all);
  constexpr uid_t kNobody = 65534;
  const pid_t stranger = fork();
  if (stranger == 0) {
    // By a relative path: the folders above may be root's alone.
    if (chdir(file.parent_path().c_str()) != 0 || setuid(kNobody) != 0) _exit(2);
    const runtime::Descriptor socket = connect_to(file.filename());
    char byte = 0;
    _exit(recv(socket.get(), &byte, 1, 0) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  server.read_error_until("the other process is another user's");
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, with_replace_no_folder_is_looked_into_that_is_not_this_user_s_alone) {
  make_runtime_folder();
  Process server{serve()};
  server.read_error_until("Methods:");
  std::filesystem::permissions(folder_.path + "/wirecall", std::filesystem::perms::all);
  const Ended ended = run(serve({"--replace"}));
  EXPECT_EQ(ended.status, 3);
  EXPECT_NE(ended.error.find("is not a folder of this user's alone; remove it, or chmod 700"), std::string::npos)
      << ended.error;
  EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace wirecall::cli
