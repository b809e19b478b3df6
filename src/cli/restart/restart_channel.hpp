// RestartChannel: what two processes of `wirecall serve` say to each other when one takes over from the other: messages
// of text, with descriptors. Over a unix socket; the other end is a process of the same user. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/descriptor.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {

/// Why there is no takeover, for the log.
class RestartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RestartMessage {
  std::string text;
  std::vector<runtime::Descriptor> descriptors;
};

/// What is said there, a struct as JSON. Throws RestartError for another text.
template <class T>
[[nodiscard]] T understood(const RestartMessage& message) {
  auto said = from_json<T>(message.text);
  if (!said) throw RestartError{"what the other process says is not understood: " + said.error().message()};
  return *std::move(said);
}

class RestartChannel {
 public:
  using Time = std::chrono::milliseconds;

  /// Of a connected unix socket. `interrupt` outlives it: once that is readable, whatever is waited for fails; -1 for
  /// none. Throws RestartError where the other end is another user's.
  explicit RestartChannel(runtime::Descriptor socket, int interrupt = -1);

  /// Returns when the system has it all; the other end may have died meanwhile. Throws RestartError.
  void send(std::string_view text, Time in_time, std::span<const runtime::Descriptor> descriptors = {});
  /// Throws RestartError where nothing comes in time, the other end has gone, or what comes is no such message, or one
  /// of more than `bytes_max` bytes of text, or of more than so many descriptors.
  [[nodiscard]] RestartMessage receive(Time in_time, std::uint64_t bytes_max, std::uint32_t descriptors_max = 0);
  /// What the other end sends from now on fails there. What it has sent before can still be received.
  void end_input() noexcept;
  /// Something has come that has not been received.
  [[nodiscard]] bool has_input() const noexcept;
  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  /// The socket, which does not block; nothing can be said any more.
  [[nodiscard]] runtime::Descriptor release() noexcept { return std::move(socket_); }

 private:
  using Clock = std::chrono::steady_clock;
  void wait_for(short events, Clock::time_point until) const;
  void send_all(std::string_view bytes, Clock::time_point until);
  void receive_all(std::span<char> bytes, RestartMessage& message, std::size_t descriptors_max,
                   Clock::time_point until);

  runtime::Descriptor socket_;
  int interrupt_;
};

}  // namespace wirecall::cli
