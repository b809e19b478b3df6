// How two processes connect for shared memory: what each of them refuses.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <thread>
#include <vector>

#include "tests/transport/shm_fixture.hpp"

namespace wirecall::transport {
namespace {

using runtime::Descriptor;
using std::chrono::milliseconds;

const Endpoint kEndpoint{"shm://calls"};

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::string connecting(milliseconds timeout = milliseconds{5000}) {
  return refusal([&] { static_cast<void>(connect_to_shm(kEndpoint, timeout)); });
}

// Listens where the client looks, and does with the connection what a test says.
class FalseServer {
 public:
  /// `prepare` is given the socket that listens.
  explicit FalseServer(
      const std::function<void(int socket)>& serve, const std::function<void(int listener)>& prepare = [](int) {}) {
    folder_.make();
    BoundSocket bound = listen_on_path(kEndpoint, shm_socket_path(kEndpoint));
    listener_ = Descriptor{bound.descriptor};
    file_ = std::move(bound.file);
    ::fcntl(listener_.get(), F_SETFL, 0);
    prepare(listener_.get());
    thread_ = std::thread{[this, serve] {
      const Descriptor socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (socket.get() >= 0) serve(socket.get());
    }};
  }
  FalseServer(FalseServer&&) = delete;
  ~FalseServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // where the client has not even connected
    thread_.join();
  }

 private:
  RuntimeFolder folder_;
  Descriptor listener_;
  SocketFile file_;
  std::thread thread_;
};

struct Offer {
  ShmHello hello{.ring_bytes = kShmRingBytes};
  Descriptor memory = ShmSegment::make().value().second;
};

std::string offered(const Offer& offer) {
  const FalseServer server{[&](int socket) { EXPECT_EQ(send_shm_hello(socket, offer.hello, offer.memory.get()), 0); }};
  return connecting();
}

Descriptor memory(std::size_t bytes, int seals) {
  Descriptor made{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  EXPECT_EQ(::ftruncate(made.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, seals), 0);
  return made;
}

constexpr std::size_t kSegmentBytes = 4096 + 2 * kShmRingBytes;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

TEST(Shm, a_client_and_a_server_connect_and_know_each_others_user) {
  const RuntimeFolder folder;
  Loop loop;
  PendingConnection accepted;
  const auto acceptor = open_acceptor(
      loop, kEndpoint, [&](PendingConnection connection) { accepted = std::move(connection); }, [](int) {});
  PendingConnection connected;
  std::thread connecting{[&] { connected = connect_to(kEndpoint, milliseconds{5000}); }};
  while (!accepted) loop.turn();
  connecting.join();
  HeardUser server;
  HeardUser client;
  const auto one = accepted.attach(loop);
  const auto other = connected.attach(loop);
  one->start(server);
  other->start(client);
  EXPECT_EQ(one->peer_credentials().value().pid, ::getpid());
  EXPECT_EQ(other->peer_credentials().value().uid, ::geteuid());
  EXPECT_EQ(one->peer_source(), "user " + std::to_string(::geteuid()));
  other->send(Buffer{"question"}, true);
  while (server.text != "question") loop.turn();
  struct stat status{};
  ASSERT_EQ(::stat(folder.own().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(Shm, a_name_is_listened_on_once_and_free_again_afterwards) {
  const RuntimeFolder folder;
  Loop loop;
  const auto listen = [&] { return open_acceptor(loop, kEndpoint, [](PendingConnection) {}, [](int) {}); };
  auto first = listen();
  EXPECT_NE(refusal([&] { static_cast<void>(listen()); }).find("another name"), std::string::npos);
  first.reset();
  loop.turn(milliseconds{0});
  EXPECT_NO_THROW(first = listen());
}

TEST(Shm, a_socket_whose_server_was_killed_is_taken_over) {
  const RuntimeFolder folder;
  folder.make();
  // Closed without its file: as a process leaves it that is killed.
  BoundSocket bound = listen_on_path(kEndpoint, shm_socket_path(kEndpoint));
  ::close(bound.descriptor);
  bound.file.keep();
  EXPECT_NE(connecting().find("Connection refused"), std::string::npos);
  Loop loop;
  EXPECT_NO_THROW(static_cast<void>(open_acceptor(loop, kEndpoint, [](PendingConnection) {}, [](int) {})));
}

TEST(Shm, where_nobody_listens_the_client_is_told_what_to_do) {
  const RuntimeFolder folder;
  EXPECT_NE(connecting().find("start the server"), std::string::npos);
  folder.make();
  EXPECT_NE(connecting().find("start the server"), std::string::npos);
}

TEST(Shm, a_folder_that_others_may_enter_is_refused_by_both) {
  for (const mode_t mode : {0755U, 0770U, 0701U}) {
    const RuntimeFolder folder;
    folder.make(mode);
    Loop loop;
    const auto listen = [&] {
      static_cast<void>(open_acceptor(loop, kEndpoint, [](PendingConnection) {}, [](int) {}));
    };
    EXPECT_NE(refusal(listen).find("not a folder of this user's alone"), std::string::npos);
    EXPECT_NE(connecting().find("not a folder of this user's alone"), std::string::npos);
  }
}

TEST(Shm, a_folder_that_is_a_link_is_refused) {
  const RuntimeFolder folder;
  std::filesystem::create_directory(folder.path + "/elsewhere");
  ::chmod((folder.path + "/elsewhere").c_str(), 0700);
  std::filesystem::create_directory_symlink(folder.path + "/elsewhere", folder.own());
  EXPECT_NE(connecting().find("not a folder of this user's alone"), std::string::npos);
}

TEST(Shm, a_folder_of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  const RuntimeFolder folder;
  folder.make();
  ASSERT_EQ(::chown(folder.own().c_str(), 12345, 12345), 0);
  EXPECT_NE(connecting().find("not a folder of this user's alone"), std::string::npos);
}

// Runs `what` as another user, who may open this one's files all the same: on a thread of its own, since the system
// call, unlike the C library's function, changes the user of a thread. False where this user may not do that.
bool as_another_user(const std::function<void()>& what) {
  bool done = false;
  std::thread{[&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() != 0 || ::syscall(SYS_setresuid, -1, kNobody, -1) != 0) return;
    ::setfsuid(0);
    done = true;
    what();
  }}.join();
  ::prctl(PR_SET_DUMPABLE, 1);  // which a process is no more that has changed its user
  return done;
}

TEST(Shm, a_server_of_another_user_is_refused) {
  if (!as_another_user([] {})) GTEST_SKIP() << "only root can be another user";
  const auto listen_as_another = [](int listener) {
    as_another_user([&] { EXPECT_EQ(::listen(listener, 1), 0); });  // whose user the kernel tells from then on
  };
  const FalseServer server{[](int socket) {
                             char byte = 0;
                             EXPECT_EQ(::recv(socket, &byte, 1, 0), 0) << "the client has said nothing, and left";
                           },
                           listen_as_another};
  EXPECT_NE(connecting().find("it is served by another user"), std::string::npos);
}

TEST(Shm, a_client_of_another_user_is_given_nothing) {
  if (!as_another_user([] {})) GTEST_SKIP() << "only root can be another user";
  const RuntimeFolder folder;
  Loop loop;
  std::size_t accepted = 0;
  const auto acceptor = open_acceptor(loop, kEndpoint, [&](PendingConnection) { ++accepted; }, [](int) {});
  std::atomic<bool> left{false};
  std::thread another{[&] {
    as_another_user([&] {
      EXPECT_NO_THROW({
        const Descriptor socket{connect_to_path(kEndpoint, shm_socket_path(kEndpoint), milliseconds{5000})};
        char byte = 0;
        EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 0) << "no memory, and the end";
      });
    });
    left = true;
    loop.wake();
  }};
  while (!left) loop.turn();
  another.join();
  EXPECT_EQ(accepted, 0U);
}

TEST(Shm, a_name_whose_path_is_too_long_is_refused) {
  const RuntimeFolder folder;
  const Endpoint longest{"shm://" + std::string(200, 'n')};
  EXPECT_NE(refusal([&] { static_cast<void>(connect_to(longest, milliseconds{100})); }).find("shorter name"),
            std::string::npos);
}

TEST(Shm, a_client_takes_what_a_server_offers) { EXPECT_EQ(offered(Offer{}), "nothing was refused"); }

TEST(Shm, memory_without_any_of_the_seals_is_refused) {
  for (const int seals : {0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_SEAL, F_SEAL_GROW | F_SEAL_SEAL}) {
    Offer offer;
    offer.memory = memory(kSegmentBytes, seals);
    EXPECT_NE(offered(offer).find("not sealed"), std::string::npos) << seals;
  }
  Offer offer;
  offer.memory = Descriptor{::eventfd(0, EFD_CLOEXEC), "eventfd"};
  EXPECT_NE(offered(offer).find("not sealed"), std::string::npos) << "it is no memory";
}

TEST(Shm, memory_of_another_size_is_refused) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, kSegmentBytes - 4096, kSegmentBytes - 1, kSegmentBytes + 1}) {
    Offer offer;
    offer.memory = memory(bytes, kAllSeals);
    EXPECT_NE(offered(offer).find("another size"), std::string::npos) << bytes;
  }
}

TEST(Shm, rings_of_a_size_that_cannot_be_are_refused) {
  for (const std::uint32_t bytes : {0U, 1U, 2048U, 65537U, 0x80000000U, 0xffffffffU}) {
    Offer offer;
    offer.hello.ring_bytes = bytes;
    EXPECT_NE(offered(offer).find("a size that cannot be"), std::string::npos) << bytes;
  }
}

TEST(Shm, memory_that_may_not_be_written_is_refused) {
  Offer offer;
  offer.memory = memory(kSegmentBytes, kAllSeals | F_SEAL_FUTURE_WRITE);
  EXPECT_NE(offered(offer).find("cannot be mapped"), std::string::npos);
}

TEST(Shm, a_hello_of_another_version_or_kind_is_refused) {
  Offer version;
  version.hello.version = 1;
  EXPECT_NE(offered(version).find("speaks version 1"), std::string::npos);
  Offer kind;
  kind.hello.magic[0] = 'W';
  EXPECT_NE(offered(kind).find("does not speak of shared memory"), std::string::npos);
}

TEST(Shm, a_hello_that_is_cut_anywhere_or_has_no_descriptor_is_refused) {
  const ShmHello hello{.ring_bytes = kShmRingBytes};
  for (std::size_t bytes = 0; bytes <= sizeof hello; ++bytes) {
    const FalseServer server{
        [&](int socket) { EXPECT_EQ(::send(socket, &hello, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes)); }};
    const std::string told = connecting();
    EXPECT_NE(told.find(bytes == 0              ? "has closed the connection"
                        : bytes == sizeof hello ? "one descriptor"
                                                : "does not speak"),
              std::string::npos)
        << bytes << told;
  }
}

void send_hello_with_descriptors(int socket, std::size_t count) {
  ShmHello hello{.ring_bytes = kShmRingBytes};
  iovec part{.iov_base = &hello, .iov_len = sizeof hello};
  const std::array<int, 5> sent{0, 1, 2, 0, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof sent)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(rights), sent.data(), count * sizeof(int));
  EXPECT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof hello));
}

TEST(Shm, descriptors_that_are_too_many_are_refused_and_none_stays_open) {
  const auto open_now = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const std::size_t before = open_now();
  for (const std::size_t count : {2, 3, 5}) {
    const FalseServer server{[&](int socket) { send_hello_with_descriptors(socket, count); }};
    EXPECT_NE(connecting().find("one descriptor"), std::string::npos);
  }
  EXPECT_EQ(open_now(), before);
}

TEST(Shm, a_server_that_says_nothing_is_waited_for_no_longer_than_the_timeout) {
  std::string told;
  {
    Descriptor ends[2];
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    ends[0] = Descriptor{pipe[0]};
    ends[1] = Descriptor{pipe[1]};
    const FalseServer server{[&](int) {
      char byte;
      EXPECT_EQ(::read(ends[0].get(), &byte, 1), 1);
    }};
    told = connecting(milliseconds{30});
    EXPECT_EQ(::write(ends[1].get(), "x", 1), 1);
  }
  EXPECT_NE(told.find("in time"), std::string::npos) << told;
}

}  // namespace
}  // namespace wirecall::transport
