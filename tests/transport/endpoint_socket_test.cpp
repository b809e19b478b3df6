// What can go wrong when endpoints are opened, on the real thing: ports of the system's choice, and socket files in a
// folder of the test's own.
#include "transport/endpoint_socket.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "transport/setup.hpp"
#include "transport/socket.hpp"

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;

std::string message_of_failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(Sockets, port_0_is_one_of_the_system_s_choice) {
  const BoundSocket bound = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  EXPECT_NE(bound.endpoint.port(), 0);
  EXPECT_EQ(bound.endpoint.host(), "127.0.0.1");
  const int fd = connect_to(bound.endpoint, milliseconds{5000}).release_socket();
  EXPECT_GE(fd, 0);
  ::close(fd);
  ::close(bound.descriptor);
}

TEST(Sockets, both_ends_send_without_waiting_for_acknowledgements) {
  const BoundSocket bound = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  const int client = connect_to(bound.endpoint, milliseconds{5000}).release_socket();
  const int server = ::accept(bound.descriptor, nullptr, nullptr);
  for (const int fd : {client, server}) {
    int on = 0;
    socklen_t size = sizeof on;
    ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
    EXPECT_EQ(on, 1);
    ::close(fd);
  }
  ::close(bound.descriptor);
}

TEST(Sockets, names_are_resolved) {
  const BoundSocket bound = listen_on(Endpoint{"tcp://localhost:0"});
  const int fd = connect_to(bound.endpoint, milliseconds{5000}).release_socket();
  EXPECT_GE(fd, 0);
  ::close(fd);
  ::close(bound.descriptor);
}

TEST(Sockets, a_port_that_is_given_back_a_moment_later_is_waited_for) {
  const BoundSocket holder = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  std::jthread giving_back{[&holder] { ::close(holder.descriptor); }};
  const BoundSocket bound = listen_on(holder.endpoint);
  EXPECT_EQ(bound.endpoint, holder.endpoint);
  ::close(bound.descriptor);
}

TEST(Sockets, a_port_in_use_is_told_with_the_cure) {
  const BoundSocket bound = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  const std::string message = message_of_failure([&] { (void)listen_on(bound.endpoint); });
  EXPECT_NE(message.find(bound.endpoint.uri()), std::string::npos) << message;
  EXPECT_NE(message.find("listen on another port"), std::string::npos) << message;
  ::close(bound.descriptor);
}

TEST(Sockets, a_port_is_free_again_at_once) {
  const BoundSocket first = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  // A connection that we close first leaves the port in TIME_WAIT.
  const int client = connect_to(first.endpoint, milliseconds{5000}).release_socket();
  const int server = ::accept(first.descriptor, nullptr, nullptr);
  ::close(server);
  ::close(client);
  ::close(first.descriptor);
  const BoundSocket second = listen_on(first.endpoint);
  EXPECT_EQ(second.endpoint, first.endpoint);
  ::close(second.descriptor);
}

TEST(Sockets, a_refused_connection_is_told_with_the_cure) {
  const BoundSocket bound = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  ::close(bound.descriptor);
  const std::string message = message_of_failure([&] { (void)connect_to(bound.endpoint, milliseconds{5000}); });
  EXPECT_NE(message.find("start the server"), std::string::npos) << message;
}

TEST(Sockets, a_host_that_does_not_exist_is_told_with_the_cure) {
  const std::string message =
      message_of_failure([] { (void)connect_to(Endpoint{"tcp://no-such-host.invalid:1"}, milliseconds{5000}); });
  EXPECT_NE(message.find("check the name of the host"), std::string::npos) << message;
}

// An address of this machine, as the system would resolve a name to it.
struct Resolved {
  explicit Resolved(int listener, addrinfo* next) {
    socklen_t size = sizeof address;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    info.ai_family = AF_INET;
    info.ai_addr = reinterpret_cast<sockaddr*>(&address);
    info.ai_addrlen = size;
    info.ai_next = next;
  }
  sockaddr_in address{};
  addrinfo info{};
};

TEST(Sockets, an_address_that_does_not_answer_leaves_time_to_those_behind_it) {
  const BoundSocket answers = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  // One whose queue is full does not answer: the system drops who comes.
  const Descriptor silent{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  Resolved behind{answers.descriptor, nullptr};
  Resolved first{silent.get(), &behind.info};
  const Descriptor filling{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::connect(filling.get(), first.info.ai_addr, first.info.ai_addrlen), 0);

  const auto deadline = std::chrono::steady_clock::now() + milliseconds{500};
  const std::expected<int, int> connected = connect_to_one_of(&first.info, deadline);
  ASSERT_TRUE(connected.has_value()) << connected.error();
  sockaddr_in there{};
  socklen_t size = sizeof there;
  ASSERT_EQ(::getpeername(*connected, reinterpret_cast<sockaddr*>(&there), &size), 0);
  EXPECT_EQ(there.sin_port, behind.address.sin_port);
  ::close(*connected);

  first.info.ai_next = nullptr;
  EXPECT_EQ(connect_to_one_of(&first.info, std::chrono::steady_clock::now() + milliseconds{1}),
            (std::expected<int, int>{std::unexpect, ETIMEDOUT}));
  ::close(answers.descriptor);
}

TEST(Sockets, only_names_have_to_be_resolved) {
  for (const char* name : {"tcp://localhost:1", "tcp://1.2.3:1", "http://example.org/rpc"}) {
    EXPECT_TRUE(resolves_a_name(Endpoint{name})) << name;
  }
  for (const char* endpoint : {"tcp://127.0.0.1:1", "tcp://[::1]:1", "http://127.0.0.1/", "unix:///a", "inproc://a"}) {
    EXPECT_FALSE(resolves_a_name(Endpoint{endpoint})) << endpoint;
  }
}

TEST(Sockets, several_listen_together_and_each_is_found) {
  const std::vector<BoundSocket> all = listen_together(Endpoint{"tcp://127.0.0.1:0"}, 3);
  ASSERT_EQ(all.size(), 3U);
  for (const BoundSocket& bound : all) EXPECT_EQ(bound.endpoint, all[0].endpoint);
  // The system chooses by the client's port, and so each time anew. Who has connected is in one of the three queues.
  const auto each_has_one = [&] {
    return std::ranges::all_of(all, [](const BoundSocket& bound) {
      pollfd waiting{.fd = bound.descriptor, .events = POLLIN, .revents = 0};
      return ::poll(&waiting, 1, 0) == 1;
    });
  };
  std::vector<int> clients;
  while (!each_has_one() && clients.size() < 1000) {
    clients.push_back(connect_to(all[0].endpoint, milliseconds{20'000}).release_socket());
  }
  EXPECT_TRUE(each_has_one());
  for (const int client : clients) ::close(client);
  for (const BoundSocket& bound : all) ::close(bound.descriptor);
}

TEST(Sockets, those_who_listen_together_share_with_nobody_else) {
  const std::vector<BoundSocket> ours = listen_together(Endpoint{"tcp://127.0.0.1:0"}, 2);
  for (const std::size_t others : {1U, 2U}) {
    const std::string message = message_of_failure([&] { (void)listen_together(ours[0].endpoint, others); });
    EXPECT_NE(message.find("another program listens there"), std::string::npos) << message;
  }
  EXPECT_THROW((void)listen_on(ours[0].endpoint), std::runtime_error);
  for (const BoundSocket& bound : ours) ::close(bound.descriptor);

  const BoundSocket alone = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  EXPECT_THROW((void)listen_together(alone.endpoint, 2), std::runtime_error);
  ::close(alone.descriptor);
}

TEST(Sockets, nobody_connects_to_those_that_join_others_before_they_begin_to_listen) {
  std::vector<BoundSocket> all;
  all.push_back(listen_on(Endpoint{"tcp://127.0.0.1:0"}));
  all = listen_together(std::move(all), 3);
  ASSERT_EQ(all.size(), 3U);
  const auto has_one = [](const BoundSocket& bound) {
    const int connected = ::accept4(bound.descriptor, nullptr, nullptr, SOCK_CLOEXEC);
    if (connected >= 0) ::close(connected);
    return connected >= 0;
  };
  std::vector<int> clients;
  const auto connect_one = [&] {
    clients.push_back(connect_to(all[0].endpoint, milliseconds{20'000}).release_socket());
  };
  for (int i = 0; i < 40; ++i) {
    connect_one();
    EXPECT_TRUE(has_one(all[0])) << i;
  }
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_FALSE(all[i].listens);
    ASSERT_TRUE(begin_to_listen(all[i].descriptor));
  }
  for (const std::size_t i : {1U, 2U}) {
    bool found = false;
    while (!found && clients.size() < 1000) {
      connect_one();
      found = has_one(all[i]);
    }
    EXPECT_TRUE(found) << i;
  }
  for (const int client : clients) ::close(client);
  for (const BoundSocket& bound : all) ::close(bound.descriptor);
}

TEST(Sockets, without_descriptors_for_all_of_them_none_listens) {
  const BoundSocket before = listen_on(Endpoint{"tcp://127.0.0.1:0"});
  ::close(before.descriptor);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few{.rlim_cur = static_cast<rlim_t>(before.descriptor) + 2, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::string message = message_of_failure([&] { (void)listen_together(before.endpoint, 8); });
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_NE(message.find("ulimit -n"), std::string::npos) << message;
  const BoundSocket after = listen_on(before.endpoint);
  ::close(after.descriptor);
}

class SocketFiles : public testing::Test {
 protected:
  SocketFiles() {
    char name[] = "/tmp/wirecall-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~SocketFiles() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/calls.sock"; }
  [[nodiscard]] Endpoint endpoint() const { return Endpoint{"unix://" + path()}; }

  std::string folder_;
};

TEST_F(SocketFiles, carry_connections_and_go_with_their_listener) {
  {
    const BoundSocket bound = listen_on(endpoint());
    EXPECT_EQ(bound.endpoint, endpoint());
    const Descriptor client{connect_to(endpoint(), milliseconds{5000}).release_socket()};
    const Descriptor server{::accept(bound.descriptor, nullptr, nullptr)};
    ASSERT_EQ(::send(client.get(), "x", 1, 0), 1);
    char byte = 0;
    EXPECT_EQ(::recv(server.get(), &byte, 1, 0), 1);
    ::close(bound.descriptor);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(SocketFiles, a_stale_one_is_replaced) {
  // Whoever dies leaves the file behind.
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const BoundSocket bound = listen_on(endpoint());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::is_socket(path()));
  const std::string refused = message_of_failure([&] { (void)connect_to(endpoint(), milliseconds{100}); });
  EXPECT_NE(refused.find("start the server"), std::string::npos) << refused;
  const BoundSocket bound = listen_on(endpoint());
  const Descriptor client{connect_to(endpoint(), milliseconds{5000}).release_socket()};
  EXPECT_GE(client.get(), 0);
  ::close(bound.descriptor);
}

TEST_F(SocketFiles, one_that_is_given_back_a_moment_later_is_waited_for) {
  const BoundSocket holder = listen_on(endpoint());
  std::jthread giving_back{[&holder] {
    // Somebody has looked whether it is in use.
    ::close(::accept(holder.descriptor, nullptr, nullptr));
    ::close(holder.descriptor);
  }};
  const BoundSocket bound = listen_on(endpoint());
  const Descriptor client{connect_to(endpoint(), milliseconds{5000}).release_socket()};
  EXPECT_GE(client.get(), 0);
  ::close(bound.descriptor);
}

TEST_F(SocketFiles, one_on_which_somebody_listens_is_not) {
  const BoundSocket bound = listen_on(endpoint());
  const std::string message = message_of_failure([&] { (void)listen_on(endpoint()); });
  EXPECT_NE(message.find("listen on another path"), std::string::npos) << message;
  const Descriptor client{connect_to(endpoint(), milliseconds{5000}).release_socket()};
  EXPECT_GE(client.get(), 0);
  ::close(bound.descriptor);
}

TEST_F(SocketFiles, what_is_no_socket_is_left_alone) {
  std::ofstream{path()} << "precious";
  std::string message = message_of_failure([&] { (void)listen_on(endpoint()); });
  EXPECT_NE(message.find("is no socket"), std::string::npos) << message;
  EXPECT_EQ(std::filesystem::file_size(path()), 8U);
  // Nor is a link followed, wherever it leads.
  std::filesystem::rename(path(), folder_ + "/file");
  std::filesystem::create_symlink(folder_ + "/nowhere", path());
  message = message_of_failure([&] { (void)listen_on(endpoint()); });
  EXPECT_NE(message.find("is no socket"), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/nowhere"));
}

TEST_F(SocketFiles, a_stale_one_of_another_user_is_left_alone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file another user's";
  const pid_t child = ::fork();
  if (child == 0) {
    const BoundSocket bound = listen_on(endpoint());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(::chown(path().c_str(), 12'345, 12'345), 0);
  const std::string message = message_of_failure([&] { (void)listen_on(endpoint()); });
  EXPECT_NE(message.find("another user"), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_socket(path()));
}

TEST_F(SocketFiles, another_one_that_has_taken_its_place_stays) {
  SocketFile second;
  {
    const BoundSocket first = listen_on(endpoint());
    std::filesystem::remove(path());
    BoundSocket next = listen_on(endpoint());
    second = std::move(next.file);
    ::close(first.descriptor);
    ::close(next.descriptor);
  }
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(SocketFiles, nobody_keeps_a_server_from_them_by_locking_their_folder) {
  const Descriptor other{::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const BoundSocket bound = listen_on(endpoint());
  EXPECT_GE(Descriptor{connect_to(endpoint(), milliseconds{5000}).release_socket()}.get(), 0);
  ::close(bound.descriptor);
}

TEST_F(SocketFiles, a_folder_that_is_not_there_is_told_with_the_cure) {
  const Endpoint nowhere{"unix://" + folder_ + "/missing/calls.sock"};
  const std::string message = message_of_failure([&] { (void)listen_on(nowhere); });
  EXPECT_NE(message.find("make it"), std::string::npos) << message;
  const std::string no_file = message_of_failure([&] { (void)connect_to(nowhere, milliseconds{100}); });
  EXPECT_NE(no_file.find("check the path"), std::string::npos) << no_file;
}

TEST_F(SocketFiles, a_disk_that_is_full_or_only_read_is_told_with_the_cure) {
  for (const int error : {ENOSPC, EDQUOT}) {
    const std::string full = listen_failure(endpoint(), error).what();
    EXPECT_NE(full.find("full: make room, or listen in another"), std::string::npos) << full;
  }
  const std::string read_only = listen_failure(endpoint(), EROFS).what();
  EXPECT_NE(read_only.find("only read: listen in another"), std::string::npos) << read_only;
}

TEST_F(SocketFiles, a_full_backlog_is_waited_for_no_longer_than_said) {
  const BoundSocket bound = listen_on(endpoint());
  ASSERT_EQ(::listen(bound.descriptor, 0), 0);
  std::vector<PendingConnection> waiting;
  std::string message;
  while (message.empty() && waiting.size() < 10) {
    message = message_of_failure([&] { waiting.push_back(connect_to(endpoint(), milliseconds{20})); });
    if (message == "no failure") message.clear();
  }
  EXPECT_NE(message.find("does not answer"), std::string::npos) << message;
  ::close(bound.descriptor);
}

TEST_F(SocketFiles, the_system_vouches_for_the_peer) {
  Loop loop;
  const BoundSocket bound = listen_on(endpoint());
  const Descriptor client{connect_to(endpoint(), milliseconds{5000}).release_socket()};
  const SocketStream stream{loop, ::accept(bound.descriptor, nullptr, nullptr)};
  const auto peer = stream.peer_credentials();
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_EQ(peer->gid, ::getegid());
  ::close(bound.descriptor);
}

TEST(EndpointSocket, standard_input_cannot_be_connected_to) {
  const std::string message = message_of_failure([] { (void)connect_to(Endpoint{"stdio:"}, milliseconds{100}); });
  EXPECT_NE(message.find("listen on it"), std::string::npos) << message;
}

// Each signal ends the wait for room in the listener's backlog, and none of them makes it longer.
TEST(UnixPlaces, connecting_keeps_its_time_though_signals_come) {
  const std::string path = testing::TempDir() + "wirecall_full_" + std::to_string(::getpid()) + ".sock";
  ::unlink(path.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<Descriptor> waiting;
  for (int error = 0; error == 0;) {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int result = ::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    error = result == 0 ? 0 : errno;
  }
  // Should it wait anew at each signal, it does until there are no more.
  static std::atomic<int> signals{0};
  struct sigaction counting{};
  counting.sa_handler = [](int) {
    constexpr itimerval kNever{};
    if (++signals == 400) ::setitimer(ITIMER_REAL, &kNever, nullptr);
  };
  struct sigaction before{};
  ::sigaction(SIGALRM, &counting, &before);
  constexpr itimerval kOften{.it_interval = {.tv_sec = 0, .tv_usec = 5000}, .it_value = {.tv_sec = 0, .tv_usec = 5000}};
  constexpr itimerval kNever{};
  ::setitimer(ITIMER_REAL, &kOften, nullptr);
  const std::string message =
      message_of_failure([&] { (void)connect_to(Endpoint{"unix://" + path}, std::chrono::milliseconds{50}); });
  ::setitimer(ITIMER_REAL, &kNever, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  ::unlink(path.c_str());
  EXPECT_NE(message.find("cannot connect to unix://"), std::string::npos) << message;
  EXPECT_LT(signals, 400);
}

}  // namespace
}  // namespace wirecall::transport
