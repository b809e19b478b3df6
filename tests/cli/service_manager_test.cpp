// What a service manager hears of `wirecall serve`, at a socket as systemd gives one: in which order, and by both kinds
// of names.
#include "cli/config/service_manager.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/cli/process.hpp"
#include "tests/server/folder.hpp"

namespace wirecall::cli {
namespace {

/// A socket that hears datagrams, named by $NOTIFY_SOCKET; '@' begins a name that is no file's.
class Manager {
 public:
  explicit Manager(const std::string& name) : descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    const timeval limit{.tv_sec = 300, .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  Manager(Manager&&) = delete;
  ~Manager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::close(descriptor_);
  }
  std::string heard() const {
    std::array<char, 256> text;
    const ssize_t bytes = ::recv(descriptor_, text.data(), text.size(), 0);
    return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  }

 private:
  int descriptor_;
};

TEST(ServiceManager, hears_that_a_server_is_ready_reads_its_file_and_ends) {
  const net::Folder folder;
  const std::string path = folder.path + "/wirecall.toml";
  std::ofstream{path} << "listen = ['" << folder.socket() << "']\n";
  const Manager manager{folder.path + "/notify"};
  Process server{{"serve", "-c", path}};
  EXPECT_EQ(manager.heard(), "READY=1\n");
  for (const std::string text : {"prot = 1\n", "[limits]\nbatch = 1\n"}) {
    std::ofstream{path} << text;
    server.signal(SIGHUP);
    const std::string reloading = manager.heard();
    EXPECT_TRUE(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC=")) << reloading;
    EXPECT_EQ(manager.heard(), "READY=1\n");
  }
  server.signal(SIGTERM);
  EXPECT_EQ(manager.heard(), "STOPPING=1\n");
  EXPECT_EQ(server.wait(), 0);
}

TEST(ServiceManager, may_have_a_socket_that_is_no_file) {
  const Manager manager{"@wirecall-test-" + std::to_string(::getpid())};
  notify_ready();
  EXPECT_EQ(manager.heard(), "READY=1\n");
}

TEST(ServiceManager, that_is_not_there_or_has_an_impossible_name_is_told_nothing) {
  for (const std::string& name : {std::string{}, std::string{"/"}, std::string{"relative"}, std::string(200, '/'),
                                  std::string{"/nowhere/at/all"}}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    notify_ready();
  }
  ::unsetenv("NOTIFY_SOCKET");
  notify_ready();
}

}  // namespace
}  // namespace wirecall::cli
