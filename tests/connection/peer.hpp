// Helpers of the end-to-end tests: a peer that is a plain blocking socket, and a server on a thread of its own. Waits
// are bounded, so a failing test does not hang.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "transport/endpoint_socket.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {

/// Ends a test that hangs. No result depends on it: a busy machine stops a process for tens of seconds.
inline constexpr std::chrono::seconds kWatchdog{300};

/// Waits until it is true, in vain for that long.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + kWatchdog;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Reads a stream by lines or by so many bytes. What reads the stream itself derives from it.
class StreamReader {
 public:
  /// The next line without its newline; the rest when the stream ends before. A line of JSON is one message: a partial
  /// one would let the author of the rest speak for the server.
  std::string line() {
    for (;;) {
      if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
        std::string line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        // Tests check messages with another delimiter themselves.
        const bool is_json = line.starts_with('{') || line.starts_with('[');
        EXPECT_TRUE(!is_json || line.ends_with('|') || is_one_message(line)) << "a line that is no message: " << line;
        return line;
      }
      if (!more()) return std::exchange(rest_, {});
    }
  }
  /// The next `size` bytes, or the rest when the stream ends before.
  std::string take(std::size_t size) {
    while (rest_.size() < size && more()) {
    }
    std::string got = rest_.substr(0, size);
    rest_.erase(0, size);
    return got;
  }
  /// Everything up to the end of the stream.
  std::string all() {
    while (more()) {
    }
    return std::exchange(rest_, {});
  }
  /// Whether the stream ends here.
  bool ended() { return rest_.empty() && !more(); }

 protected:
  StreamReader() = default;
  StreamReader(StreamReader&&) = default;
  StreamReader& operator=(StreamReader&&) = default;
  ~StreamReader() = default;
  /// Waits for more of the stream and appends it. False: it has ended.
  virtual bool read_more(std::string& to) = 0;

 private:
  static bool is_one_message(std::string_view line) {
    Buffer text{line};
    const Scan scan = json_codec().scan(text.padded(), kDepthMax);
    return scan.status == ScanStatus::complete && scan.offset == line.size() && line.find('\r') == line.npos;
  }
  bool more() { return read_more(rest_); }

  std::string rest_;
};

class RawPeer final : public StreamReader {
 public:
  explicit RawPeer(int fd) : fd_(fd) {
    const timeval limit{.tv_sec = kWatchdog.count(), .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  explicit RawPeer(const Endpoint& endpoint) : RawPeer(connected(endpoint)) {}
  RawPeer(RawPeer&& other) noexcept : StreamReader(std::move(other)), fd_(std::exchange(other.fd_, -1)) {}
  RawPeer& operator=(RawPeer&& other) noexcept {
    std::swap(fd_, other.fd_);
    StreamReader::operator=(std::move(other));
    return *this;
  }
  ~RawPeer() { close(); }

  /// False when the connection is closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = again_if_interrupted([&] { return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// The next `size` bytes, or the rest when the stream ends before. Reads no further byte, so the kernel may keep
  /// some.
  std::string bytes(std::size_t size) {
    std::string got(size, '\0');
    std::size_t at = 0;
    while (at < size) {
      const ssize_t more = again_if_interrupted([&] { return ::recv(fd_, got.data() + at, size - at, 0); });
      if (more <= 0) break;
      at += static_cast<std::size_t>(more);
    }
    got.resize(at);
    return got;
  }
  /// Whether the stream ends here, without bytes before.
  bool at_end() {
    char byte;
    return again_if_interrupted([&] { return ::recv(fd_, &byte, 1, 0); }) == 0;
  }
  void finish() { ::shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  static int connected(const Endpoint& endpoint) {
    const int fd = transport::connect_to(endpoint, kWatchdog).release_socket();
    // Blocking from here on: the tests wait for the bytes that they expect.
    const int flags = ::fcntl(fd, F_GETFL);
    ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
  }
  // Signals interrupt calls with a time limit, and so does the end of a ring that the thread has used.
  static ssize_t again_if_interrupted(const auto& transfer) {
    ssize_t bytes;
    do {
      bytes = transfer();
    } while (bytes < 0 && errno == EINTR);
    return bytes;
  }
  bool read_more(std::string& to) override {
    char block[65536];
    const ssize_t got = again_if_interrupted([&] { return ::recv(fd_, block, sizeof block, 0); });
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ADD_FAILURE() << "nothing came in time";
    if (got > 0) to.append(block, static_cast<std::size_t>(got));
    return got > 0;
  }

  int fd_;
};

/// Handlers wait here until the test releases them.
class Gate {
 public:
  void wait() {
    std::unique_lock lock{mutex_};
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --inside_;
  }
  void open() {
    const std::scoped_lock lock{mutex_};
    open_ = true;
    changed_.notify_all();
  }
  void close() {
    const std::scoped_lock lock{mutex_};
    open_ = false;
  }
  void await_inside(int count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return inside_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

/// Serves until the end of its scope.
class RunningServer {
 public:
  explicit RunningServer(Server& server) : server_(&server), thread_([this] { end = server_->run(); }) {}
  ~RunningServer() { stop(); }
  void stop() {
    server_->stop();
    join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  RunEnd end = RunEnd::interrupted;

 private:
  Server* server_;
  std::thread thread_;
};

/// A server that runs the test's script on each connection that it accepts, one after the other.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(RawPeer)> script) : ScriptedServer(1, std::move(script)) {}
  ScriptedServer(int connections, std::function<void(RawPeer)> script)
      : ScriptedServer(Endpoint{"tcp://127.0.0.1:0"}, connections, std::move(script)) {}
  ScriptedServer(const Endpoint& endpoint, int connections, std::function<void(RawPeer)> script)
      : bound_(transport::listen_on(endpoint)), thread_([this, connections, script = std::move(script)] {
          for (int i = 0; i < connections; ++i) {
            // The listener does not block; its backlog has the connection as soon as the client has its own end.
            int fd;
            while ((fd = ::accept(bound_.descriptor, nullptr, nullptr)) < 0 && !stopped_) std::this_thread::yield();
            if (fd >= 0) script(RawPeer{fd});
          }
        }) {}
  ~ScriptedServer() {
    stopped_ = true;
    join();
    ::close(bound_.descriptor);
  }
  /// Waits until all connections have been served.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::string uri() const { return bound_.endpoint.uri(); }

 private:
  transport::BoundSocket bound_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace wirecall::net
