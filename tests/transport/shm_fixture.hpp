// For tests of shared memory: a run-time folder of their own, and both ends of a connection within the test.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <utility>

#include "transport/setup.hpp"
#include "transport/shm_hello.hpp"
#include "transport/shm_stream.hpp"

namespace wirecall::transport {

/// A user's run-time folder, in the environment until the end of its scope.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    char name[] = "/tmp/wirecall-test-XXXXXX";
    path = ::mkdtemp(name);
    if (const char* const former = ::getenv("XDG_RUNTIME_DIR")) former_ = former;
    ::setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
  }
  RuntimeFolder(RuntimeFolder&&) = delete;
  ~RuntimeFolder() {
    former_.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", former_.c_str(), 1);
    std::filesystem::remove_all(path);
  }
  [[nodiscard]] std::string own() const { return path + "/wirecall"; }
  /// The folder for sockets, as a server makes it.
  void make(mode_t mode = 0700) const {
    std::filesystem::create_directory(own());
    EXPECT_EQ(::chmod(own().c_str(), mode), 0);
  }

  std::string path;

 private:
  std::string former_;
};

/// What a user was told.
class HeardUser final : public StreamUser {
 public:
  void received(std::span<char> bytes) override {
    text.append(bytes.data(), bytes.size());
    EXPECT_EQ(bytes.data()[bytes.size()], '\0');
  }
  void ended() override { EXPECT_FALSE(std::exchange(over, true)); }
  void sent(Buffer) override { ++sends; }
  void failed(int with) override {
    EXPECT_EQ(error, 0);
    error = with;
  }

  std::string text;
  bool over = false;
  int sends = 0;
  int error = 0;
};

/// Both ends: `server` has mapped what it made, `client` what it was given.
struct ShmPair {
  ShmPair() : ShmPair(ShmSegment::make().value()) {}
  [[nodiscard]] std::unique_ptr<ByteStream> attach_server(Loop& loop) { return server.attach(loop); }

  ShmConnection server;
  ShmConnection client;

 private:
  using Made = std::pair<ShmSegment, runtime::Descriptor>;
  using Sockets = std::pair<runtime::Descriptor, runtime::Descriptor>;
  static Sockets sockets() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    return {runtime::Descriptor{ends[0]}, runtime::Descriptor{ends[1]}};
  }
  explicit ShmPair(Made made) : ShmPair(std::move(made), sockets()) {}
  ShmPair(Made made, Sockets ends)
      : server(ShmLink{.segment = std::move(made.first), .role = ShmRole::server, .socket = std::move(ends.first)}),
        client(ShmLink{.segment = ShmSegment::map(made.second.get(), kShmRingBytes).value(),
                       .role = ShmRole::client,
                       .socket = std::move(ends.second)}) {}
};

}  // namespace wirecall::transport
