// LongMessage: a message that takes milliseconds to read, and is read on another thread meanwhile the loop serves
// others. Whoever has received it hands it over by `read`, looks at nothing that follows, and is told on its loop's
// thread when it has been read. Owned by the connection and by the thread that reads it; who goes before that says so
// (`forget`).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "message/explain.hpp"
#include "message/transcoder.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"

namespace wirecall::session {

/// A message of more bytes is long: reading less takes some milliseconds at most. A MiB of binary and its envelope is
/// not.
inline constexpr std::size_t kLongMessageBytes = std::size_t{3} << 19;

class LongMessage {
 public:
  using Status = message::Transcoder::Status;

  /// Called when it has been read. Thread: the loop's.
  using Then = std::move_only_function<void()>;

  /// `hold` keeps what follows from being looked at, until after `then`.
  LongMessage(Buffer text, const Limits& limits, std::optional<std::chrono::nanoseconds> came,
              std::shared_ptr<void> hold, Then then)
      : came(came), text(std::move(text)), limits_(limits), hold_(std::move(hold)), then_(std::move(then)) {}
  LongMessage(LongMessage&&) = delete;

  /// Reads JSON; of MessagePack, `checks` it. On the pool, or here where that has no thread to be had. The loop's
  /// thread.
  static void read(const std::shared_ptr<LongMessage>& message, detail::BlockingPool& pool);
  /// Makes JSON of MessagePack that has been checked, and reads that.
  static void transcode(const std::shared_ptr<LongMessage>& message, detail::BlockingPool& pool);
  /// Nobody is there any more to be told.
  void forget() noexcept {
    then_ = nullptr;
    hold_.reset();
  }
  [[nodiscard]] bool is_msgpack() const noexcept { return !text.empty() && message::is_msgpack(text.data()[0]); }
  /// What it holds of memory. Any thread.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  const std::optional<std::chrono::nanoseconds> came;  ///< when its last byte had

  // Once it has been read.
  Buffer text;                 ///< or what MessagePack is in JSON; without the byte order mark that `mark` counts
  std::size_t mark = 0;        ///< bytes of a byte order mark in front of JSON
  bool transcoded = false;     ///< it was MessagePack, and is JSON now
  bool out_of_memory = false;  ///< nothing else means anything
  Status status = Status::done;
  message::PackedMembers members;       ///< of MessagePack
  std::vector<message::Unheld> unheld;  ///< of what was transcoded
  std::vector<std::string> cancels;     ///< likewise
  Scan scan;                            ///< of JSON
  Received message;                     ///< of JSON that is complete: views of `text`

 private:
  using Step = void (LongMessage::*)();

  static void run(const std::shared_ptr<LongMessage>& message, Step step, detail::BlockingPool& pool);
  void tell() noexcept;
  void perform(Step step) noexcept;
  void read_or_check();
  void read_json();
  void make_json();

  const Limits limits_;
  const std::size_t bytes_ = text.capacity();
  std::shared_ptr<void> hold_;
  Then then_;
};

}  // namespace wirecall::session
